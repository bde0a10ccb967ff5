//! The batch of datagrams that is being written to a socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use marline_proto::{ConnectionHandle, FourTuple, Transmit, Unreachable};

use crate::runtime::{QUOTE, UdpSocket, UnreachableReport};

/// The most bytes that one UDP send takes: a 16-bit length less the IPv4 and UDP headers.
const MAX_SEND: usize = 65_507;

/// Most datagrams that a connection is polled for at once: so many of 1,472 bytes (the MTU of Ethernet) fill one send.
const MAX_BATCH: usize = 44;

/// The system's error for a datagram that exceeds the MTU of the interface: EMSGSIZE, and WSAEMSGSIZE of Windows.
const TOO_LARGE: i32 = if cfg!(windows) {
    10_040
} else if cfg!(any(target_os = "linux", target_os = "android")) {
    90
} else {
    40
};

/// A datagram that exceeds the MTU of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedDatagram {
    pub(super) connection: ConnectionHandle,
    pub(super) tuple: FourTuple,
    /// Its size in bytes.
    pub(super) size: usize,
}

/// A batch that is being sent.
struct Batch {
    connection: ConnectionHandle,
    transmit: Transmit,
    /// The socket that its connection used when it wrote the batch. After a migration another address must not send the
    /// same connection IDs (RFC 9000, section 9.5).
    socket: Arc<dyn UdpSocket>,
    /// Whether it may leave only from its own source address.
    is_pinned: bool,
}

impl Batch {
    fn try_send(&self, transmit: &Transmit, part: &[u8]) -> io::Result<()> {
        let sent = self.socket.try_send(transmit, part);
        let has_source = !transmit.tuple.local.ip().is_unspecified();
        match sent {
            Err(error)
                if has_source && !self.is_pinned && error.kind() != io::ErrorKind::WouldBlock =>
            {
                self.socket.try_send(&without_source(transmit), part)
            }
            sent => sent,
        }
    }
}

/// At most one batch, which is kept while the socket's send buffer is full.
#[derive(Default)]
pub(super) struct OutgoingBatch {
    pub(super) buffer: Vec<u8>,
    batch: Option<Batch>,
    sent: usize,
    /// The last datagram that this host has no route for.
    unroutable: Option<UnreachableReport>,
    /// Whether a datagram could not leave because its source address, its interface or its route is gone.
    network_lost: bool,
    /// The last datagram that exceeded the MTU of its interface.
    refused: Option<RefusedDatagram>,
}

impl OutgoingBatch {
    /// The most datagrams in a batch.
    pub(super) fn max_datagrams(socket: &dyn UdpSocket) -> usize {
        socket.max_gso_segments().clamp(1, MAX_BATCH)
    }

    /// Starts sending `transmit` of `connection`, whose bytes are in `buffer`, from `socket`. Unless it `is_pinned`, the system may
    /// choose another source address if its own is no longer available. With several paths, that would send
    /// packets of one path over another.
    pub(super) fn start(
        &mut self,
        connection: ConnectionHandle,
        transmit: Transmit,
        socket: Arc<dyn UdpSocket>,
        is_pinned: bool,
    ) {
        self.batch = Some(Batch {
            connection,
            transmit,
            socket,
            is_pinned,
        });
        self.sent = 0;
    }

    /// Sends the rest of the batch; pending while the socket is full. Datagrams that the socket refuses
    /// are lost, like those that the network drops.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(batch) = &self.batch else {
            return Poll::Ready(());
        };
        let Batch {
            connection,
            transmit: whole,
            socket,
            ..
        } = batch;
        while self.sent < whole.size {
            let rest = &self.buffer[self.sent..whole.size];
            let part = match whole.segment_size {
                Some(segment) if rest.len() > segment => {
                    let segments = (MAX_SEND / segment).clamp(1, socket.max_gso_segments().max(1));
                    &rest[..rest.len().min(segments * segment)]
                }
                _ => rest,
            };
            let transmit = Transmit {
                size: part.len(),
                segment_size: whole.segment_size.filter(|&segment| segment < part.len()),
                ..*whole
            };
            match batch.try_send(&transmit, part) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match socket.poll_send_ready(cx) {
                        Poll::Ready(Ok(())) => continue,
                        // The socket failed: the datagrams are lost, and receiving reports the error.
                        Poll::Ready(Err(_)) => {}
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Err(error) => {
                    self.network_lost |= is_of_network(&error);
                    if error.raw_os_error() == Some(TOO_LARGE) {
                        self.refused = Some(RefusedDatagram {
                            connection: *connection,
                            tuple: whole.tuple,
                            size: whole.segment_size.unwrap_or(whole.size),
                        });
                    }
                    if let Some(what) = unroutable(&error) {
                        self.unroutable = Some(UnreachableReport {
                            what,
                            remote: transmit.tuple.remote,
                            quote: part[..part.len().min(QUOTE)].to_vec(),
                        });
                    }
                }
                Ok(()) => {}
            }
            self.sent += part.len();
        }
        self.batch = None;
        Poll::Ready(())
    }

    /// Whether since the last call a datagram could not leave because a part of this host's network is gone.
    pub(super) fn take_network_lost(&mut self) -> bool {
        std::mem::take(&mut self.network_lost)
    }

    /// Takes the datagram that exceeded the MTU of its interface.
    pub(super) fn take_refused(&mut self) -> Option<RefusedDatagram> {
        self.refused.take()
    }

    /// Takes the report about a datagram for whose destination this host has no route.
    pub(super) fn take_unroutable(&mut self) -> Option<UnreachableReport> {
        self.unroutable.take()
    }
}

/// Whether `error` may come from a change of this host's addresses, interfaces or routes.
fn is_of_network(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            // Of Linux, for a source address that this host does not have.
            | io::ErrorKind::InvalidInput
            // Of an interface that was removed.
            | io::ErrorKind::NotFound
    )
}

fn unroutable(error: &io::Error) -> Option<Unreachable> {
    match error.kind() {
        // Broadcast addresses are refused so.
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::PermissionDenied => {
            Some(Unreachable::Network)
        }
        io::ErrorKind::HostUnreachable => Some(Unreachable::Host),
        _ => None,
    }
}

/// The same with a source address of the system's choice.
pub(super) fn without_source(transmit: &Transmit) -> Transmit {
    let mut transmit = *transmit;
    transmit.tuple.local.set_ip(match transmit.tuple.local {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    });
    transmit
}

#[cfg(test)]
mod tests;
