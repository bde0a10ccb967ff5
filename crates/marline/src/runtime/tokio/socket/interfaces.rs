//! Sockets that are bound to interfaces, in addition to the endpoint's own.

use std::io::{self, IoSliceMut};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use super::SystemSocket;
use crate::runtime::{InterfaceAddress, RecvMeta, UnreachableReport};

/// The most sockets; the oldest is dropped for another. Interfaces that were removed and added again replace
/// their own.
const MAX_SOCKETS: usize = 16;

/// Consecutive errors of a socket after which a poll continues with the next.
const MAX_ERRORS: usize = 4;

/// One socket for each address. Most endpoints have none, which costs one atomic load per operation.
#[derive(Debug, Default)]
pub(super) struct InterfaceSockets {
    count: AtomicUsize,
    sockets: RwLock<Vec<Arc<InterfaceSocket>>>,
    /// The number of the socket that was last full, from 1; 0 if none was.
    full: AtomicUsize,
    /// The socket that is polled first, in turn, so that none is starved.
    turn: AtomicUsize,
    /// Whether the sockets report unreachable destinations.
    reports_unreachable: AtomicBool,
}

#[derive(Debug)]
struct InterfaceSocket {
    interface: InterfaceAddress,
    socket: SystemSocket,
}

impl InterfaceSocket {
    fn report_unreachable(&self, enabled: bool) {
        // Where it is not possible, timers end what is unreachable.
        self.socket.errors.enable(&self.socket.io, enabled).ok();
    }
}

impl InterfaceSockets {
    /// Adds a socket, unless there is one for this address of this interface.
    pub(super) fn add(&self, interface: &InterfaceAddress) -> io::Result<()> {
        let mut sockets = self.sockets.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = |bound: &Arc<InterfaceSocket>| {
            let known = &bound.interface;
            known.address == interface.address && known.index == interface.index
        };
        if sockets.iter().any(is_same) {
            return Ok(());
        }
        let bound = Arc::new(InterfaceSocket {
            interface: interface.clone(),
            socket: SystemSocket::new(bind(interface)?)?,
        });
        if self.reports_unreachable.load(Relaxed) {
            bound.report_unreachable(true);
        }
        let is_replaced = |other: &Arc<InterfaceSocket>| {
            let known = &other.interface;
            known.address == interface.address
                || (known.name == interface.name
                    && known.index != interface.index
                    && known.address.is_ipv4() == interface.address.is_ipv4())
        };
        sockets.retain(|other| !is_replaced(other));
        if sockets.len() == MAX_SOCKETS {
            sockets.remove(0);
        }
        sockets.push(bound);
        self.full.store(0, Relaxed);
        self.count.store(sockets.len(), Relaxed);
        Ok(())
    }

    fn socket(&self, at: usize) -> Option<Arc<InterfaceSocket>> {
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        sockets.get(at).cloned()
    }

    /// Sends through the socket of the address `local`, if there is one.
    pub(super) fn with(
        &self,
        local: IpAddr,
        send: impl FnOnce(&SystemSocket) -> io::Result<()>,
    ) -> Option<io::Result<()>> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let local = local.to_canonical();
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        let mut indexed = sockets.iter().enumerate();
        let found = indexed.find(|(_, bound)| bound.interface.address == local);
        let sent = found.map(|(at, bound)| (at, send(&bound.socket)));
        let is_full = |sent: &io::Result<()>| matches!(sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        let full = match &sent {
            Some((at, sent)) if is_full(sent) => at + 1,
            _ => 0,
        };
        self.full.store(full, Relaxed);
        sent.map(|(_, sent)| sent)
    }

    /// The socket that was full at the last attempt, if it was one of these.
    pub(super) fn poll_full(&self, cx: &mut Context<'_>) -> Option<Poll<io::Result<()>>> {
        let at = self.full.load(Relaxed).checked_sub(1)?;
        let bound = self.socket(at)?;
        Some(bound.socket.poll_send_ready(cx))
    }

    /// Enables or disables reports of unreachable destinations.
    pub(super) fn report_unreachable(&self, enabled: bool) {
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        self.reports_unreachable.store(enabled, Relaxed);
        for bound in &*sockets {
            bound.report_unreachable(enabled);
        }
    }

    /// The next report of any of the sockets.
    pub(super) fn poll_unreachable(&self, cx: &mut Context<'_>) -> Poll<UnreachableReport> {
        if self.count.load(Relaxed) == 0 {
            return Poll::Pending;
        }
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        let mut polled = sockets.iter().map(|bound| bound.socket.errors.poll(cx));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    }

    /// Receives datagrams from one of the sockets. Errors are ignored: they concern one interface and not the
    /// endpoint.
    pub(super) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Option<usize> {
        let count = self.count.load(Relaxed);
        if count == 0 {
            return None;
        }
        let turn = self.turn.fetch_add(1, Relaxed);
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        for step in 0..sockets.len() {
            let bound = &sockets[turn.wrapping_add(step) % sockets.len()];
            for _ in 0..MAX_ERRORS {
                match bound.socket.poll_recv(cx, buffers, meta) {
                    Poll::Ready(Ok(filled)) if filled > 0 => return Some(filled),
                    Poll::Ready(Err(_)) => {}
                    Poll::Ready(Ok(_)) | Poll::Pending => break,
                }
            }
        }
        None
    }

    /// Most datagrams that one send may carry through any of the sockets.
    pub(super) fn max_gso_segments(&self) -> Option<usize> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        let most = |bound: &Arc<InterfaceSocket>| bound.socket.state.max_gso_segments();
        sockets.iter().map(most).min()
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(super) fn bind(interface: &InterfaceAddress) -> io::Result<std::net::UdpSocket> {
    use socket2::{Domain, Protocol, Socket, Type};
    use std::net::SocketAddr;

    let address = SocketAddr::new(interface.address, 0);
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    bind_to(&socket, interface)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// By name: the system accepts an index that no interface has.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_to(socket: &socket2::Socket, interface: &InterfaceAddress) -> io::Result<()> {
    socket.bind_device(Some(interface.name.as_bytes()))
}

#[cfg(target_vendor = "apple")]
fn bind_to(socket: &socket2::Socket, interface: &InterfaceAddress) -> io::Result<()> {
    let index = interface.index.and_then(std::num::NonZeroU32::new);
    if index.is_none() {
        return Err(io::ErrorKind::NotFound.into());
    }
    match interface.address {
        IpAddr::V4(_) => socket.bind_device_by_index_v4(index),
        IpAddr::V6(_) => socket.bind_device_by_index_v6(index),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(super) fn bind(_: &InterfaceAddress) -> io::Result<std::net::UdpSocket> {
    Err(io::ErrorKind::Unsupported.into())
}
