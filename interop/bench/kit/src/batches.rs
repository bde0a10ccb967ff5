//! A UDP socket with segmentation offloads in both directions, for stacks without an event loop.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};

use crate::socket;

/// Largest UDP payload, which limits a batch of datagrams, in bytes.
pub const MAX_BATCH: usize = 65_507;

/// A socket, and the buffers to receive with.
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    poll: Poll,
    events: Events,
    buffers: Vec<Vec<u8>>,
}

impl Socket {
    /// A socket bound to `address`, with the buffer sizes of all stacks.
    ///
    /// # Errors
    /// If it cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
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

    /// The address it is bound to.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Maximum number of datagrams per system call.
    #[must_use]
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends `contents` as datagrams of `segment` bytes, of which the last may be shorter.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn send(&self, to: SocketAddr, contents: &[u8], segment: usize) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: Some(segment),
            src_ip: None,
        };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                // Loopback delivers immediately: the buffer has space again when the other end has read.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }

    /// Passes a batch of datagrams to `handle`. Returns whether there were any.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn receive(&mut self, mut handle: impl FnMut(SocketAddr, &mut [u8])) -> io::Result<bool> {
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

    /// Waits until the socket is readable. Returns whether it is within `limit`. Call only after
    /// [`receive`](Self::receive) has returned `false`.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn wait(&mut self, limit: Duration) -> io::Result<bool> {
        self.poll.poll(&mut self.events, Some(limit))?;
        Ok(!self.events.is_empty())
    }
}
