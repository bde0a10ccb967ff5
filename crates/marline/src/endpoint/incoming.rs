//! Receive buffers, and the addresses of the datagrams in them.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use marline_proto::{EcnCodepoint, FourTuple};

use crate::runtime::{RecvMeta, UdpSocket};

/// Buffers filled by one system call. With GRO each holds up to 64 datagrams; without, this is the batch.
const BUFFERS: usize = 8;

/// Bytes of each buffer: the largest UDP datagram, or the largest sequence of datagrams that GRO coalesces.
const BUFFER_LEN: usize = 1 << 16;

/// A received datagram.
pub(super) struct ReceivedDatagram<'b> {
    pub(super) tuple: FourTuple,
    pub(super) ecn: Option<EcnCodepoint>,
    /// The UDP payload, which is decrypted in place.
    pub(super) payload: &'b mut [u8],
}

/// One batch of received datagrams.
pub(super) struct ReceiveBuffers {
    bytes: Box<[u8]>,
    meta: [RecvMeta; BUFFERS],
}

impl ReceiveBuffers {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; BUFFERS * BUFFER_LEN].into(),
            meta: [RecvMeta::default(); BUFFERS],
        }
    }

    /// Fills buffers from `socket`; ready with how many.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        socket: &dyn UdpSocket,
    ) -> Poll<io::Result<usize>> {
        let mut rest = self.bytes.chunks_exact_mut(BUFFER_LEN);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().unwrap_or_default()));
        socket.poll_recv(cx, &mut buffers, &mut self.meta)
    }

    /// The datagrams of the first `filled` buffers, in order of arrival, for a socket bound to `local`.
    pub(super) fn datagrams(
        &mut self,
        filled: usize,
        local: SocketAddr,
    ) -> impl Iterator<Item = ReceivedDatagram<'_>> {
        self.bytes
            .chunks_exact_mut(BUFFER_LEN)
            .zip(&self.meta)
            .take(filled)
            .flat_map(move |(buffer, meta)| {
                let tuple = FourTuple {
                    local: destination_address(local, meta.local_ip),
                    remote: meta.remote,
                };
                let len = meta.len.min(buffer.len());
                buffer[..len]
                    .chunks_mut(meta.stride.max(1))
                    .map(move |payload| ReceivedDatagram {
                        tuple,
                        ecn: meta.ecn,
                        payload,
                    })
            })
    }
}

/// The local address that a datagram was sent to.
fn destination_address(local: SocketAddr, ip: Option<IpAddr>) -> SocketAddr {
    SocketAddr::new(ip.unwrap_or(local.ip()), local.port())
}
