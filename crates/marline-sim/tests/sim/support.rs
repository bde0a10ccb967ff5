//! Sending and receiving datagrams in tests of sockets.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};

use marline::proto::FourTuple;
use marline::runtime::{RecvMeta, UdpSocket};
use marline::{EcnCodepoint, Transmit};

/// Sends `payload` to `to`, in datagrams of `segment` bytes if given.
pub(crate) fn send(
    from: &dyn UdpSocket,
    to: SocketAddr,
    payload: &[u8],
    segment: Option<usize>,
) -> io::Result<()> {
    send_as(from, from.local_addr()?, to, payload, segment)
}

/// As [`send`], from the address `local`.
pub(crate) fn send_as(
    from: &dyn UdpSocket,
    local: SocketAddr,
    to: SocketAddr,
    payload: &[u8],
    segment: Option<usize>,
) -> io::Result<()> {
    let transmit = Transmit {
        tuple: FourTuple { local, remote: to },
        ecn: Some(EcnCodepoint::Ect0),
        size: payload.len(),
        segment_size: segment,
    };
    from.try_send(&transmit, payload)
}

/// A received datagram.
pub(crate) struct Received {
    pub(crate) meta: RecvMeta,
    pub(crate) payload: Vec<u8>,
}

/// Reads all datagrams in the buffer of `socket`.
pub(crate) fn read(socket: &dyn UdpSocket) -> Vec<Received> {
    let mut all = Vec::new();
    loop {
        let mut bytes = [0; 2000];
        let mut meta = [RecvMeta::default()];
        let mut cx = Context::from_waker(Waker::noop());
        let filled = socket.poll_recv(&mut cx, &mut [IoSliceMut::new(&mut bytes)], &mut meta);
        match filled {
            Poll::Ready(filled) => assert_eq!(filled.unwrap(), 1),
            Poll::Pending => return all,
        }
        let [meta] = meta;
        all.push(Received {
            meta,
            payload: bytes[..meta.len].to_vec(),
        });
    }
}
