//! A UDP socket with segmentation offloads in both directions.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use bench_kit::socket;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};

/// Largest UDP payload, and so the largest batch of datagrams, bytes.
pub(crate) const MAX_BATCH: usize = 65_507;

pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    poll: Poll,
    events: Events,
    buffers: Vec<Vec<u8>>,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = socket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        let mut socket = UdpSocket::from_std(socket);
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut socket, Token(0), Interest::READABLE)?;
        Ok(Self {
            socket,
            state,
            poll,
            events: Events::with_capacity(1),
            buffers: vec![vec![0; 1 << 16]; BATCH_SIZE],
        })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Datagrams that can be sent at once.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends `contents` as datagrams of `segment` bytes.
    pub(crate) fn send(&self, to: SocketAddr, contents: &[u8], segment: usize) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: Some(segment),
            src_ip: None,
        };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                // Loopback delivers at once: room comes back when the other end has read.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }

    /// Gives all datagrams that are there to `handle`; whether there were any.
    pub(crate) fn receive(
        &mut self,
        mut handle: impl FnMut(SocketAddr, &mut [u8]),
    ) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<_> = self
            .buffers
            .iter_mut()
            .map(|b| IoSliceMut::new(b))
            .collect();
        let socket = (&self.socket).into();
        let count = match self.state.recv(socket, &mut slices, &mut metas) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            received => received?,
        };
        for (buffer, meta) in self.buffers.iter_mut().zip(&metas[..count]) {
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                handle(meta.addr, datagram);
            }
        }
        Ok(true)
    }

    /// Waits until there is something to receive; whether it came within `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<bool> {
        self.poll.poll(&mut self.events, Some(limit))?;
        Ok(!self.events.is_empty())
    }
}
