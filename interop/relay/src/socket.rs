//! UDP sockets that keep ECN code points.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

/// Size of kernel buffers, such that bursts reach the relay's own queue.
const KERNEL_BUFFER: usize = 4 << 20;
/// Largest UDP payload, also with receive offload.
const MAX_DATAGRAM: usize = 65_536;

/// The ECN field of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ecn {
    NotEct,
    Ect0,
    Ect1,
    Ce,
}

/// A non-blocking UDP socket.
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut io = UdpSocket::bind(address)?;
        registry.register(&mut io, token, Interest::READABLE)?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        // The kernel may grant less; then bursts are lost, as on any host.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&io), KERNEL_BUFFER);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&io), KERNEL_BUFFER);
        Ok(Self { io, state })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    pub(crate) fn send(&self, to: SocketAddr, datagram: &[u8], ecn: Ecn) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: match ecn {
                Ecn::NotEct => None,
                Ecn::Ect0 => Some(EcnCodepoint::Ect0),
                Ecn::Ect1 => Some(EcnCodepoint::Ect1),
                Ecn::Ce => Some(EcnCodepoint::Ce),
            },
            contents: datagram,
            segment_size: None,
            src_ip: None,
        };
        self.state.try_send(UdpSockRef::from(&self.io), &transmit)
    }
}

/// Buffers for a batch of datagrams.
pub(crate) struct Inbox {
    buffers: Vec<Vec<u8>>,
    metas: Vec<RecvMeta>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            buffers: vec![vec![0; MAX_DATAGRAM]; BATCH_SIZE],
            metas: vec![RecvMeta::default(); BATCH_SIZE],
        }
    }

    /// Receives available datagrams and passes each to `each`; `false` if there were none.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(SocketAddr, Ecn, &mut [u8]),
    ) -> io::Result<bool> {
        let mut slices: Vec<IoSliceMut<'_>> = self
            .buffers
            .iter_mut()
            .map(|buffer| IoSliceMut::new(buffer))
            .collect();
        let from = UdpSockRef::from(&socket.io);
        let count = match socket.state.recv(from, &mut slices, &mut self.metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        for (buffer, meta) in self.buffers.iter_mut().zip(&self.metas).take(count) {
            let ecn = match meta.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            };
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                each(meta.addr, ecn, datagram);
            }
        }
        Ok(true)
    }
}
