//! ICMP messages from the error queue of a socket (`IP_RECVERR`, ip(7)).

use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use marline_proto::Unreachable;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use crate::runtime::{QUOTE, UnreachableReport};

/// Bytes of control messages: the error with the address of its sender (44 at most), and what the socket reports about
/// each datagram.
const CONTROL: usize = 256;

/// Codes of ICMP messages of type 3 (RFC 792).
mod icmp {
    pub(super) const UNREACHABLE: u8 = 3;
    pub(super) const NETWORK: u8 = 0;
    pub(super) const HOST: u8 = 1;
    pub(super) const PORT: u8 = 3;
}

/// Codes of ICMPv6 messages of type 1 (RFC 4443, section 3.1).
mod icmp6 {
    pub(super) const UNREACHABLE: u8 = 1;
    pub(super) const NO_ROUTE: u8 = 0;
    pub(super) const ADDRESS: u8 = 3;
    pub(super) const PORT: u8 = 4;
}

type NextReport = Pin<Box<dyn Future<Output = io::Result<UnreachableReport>> + Send>>;

/// The error queue of a socket. While it is enabled, each ICMP message also becomes the result of one of the next
/// system calls that send or receive.
#[derive(Debug, Default)]
pub(super) struct ErrorQueue {
    /// Whether reports are wanted.
    is_wanted: AtomicBool,
    /// Whether the system queues messages.
    is_enabled: AtomicBool,
    /// Whether it ever did, so that system calls may return errors of earlier datagrams.
    was_enabled: AtomicBool,
    /// Whether there was an error. From then on the reactor reports the socket as writable although it is full, because
    /// it takes an error for a closed connection.
    had_errors: AtomicBool,
    watch: Mutex<Watch>,
}

#[derive(Default)]
struct Watch {
    /// A duplicate of the socket: the reactor reports errors of a descriptor only to those who wait for nothing else.
    errors: Option<Arc<AsyncFd<OwnedFd>>>,
    next: Option<NextReport>,
    /// Another duplicate, while the socket is full: the reactor has not seen an error of it.
    full: Option<AsyncFd<OwnedFd>>,
}

impl ErrorQueue {
    /// Has the system queue ICMP messages, or no longer once one arrives: changing it for each handshake would be
    /// six system calls.
    pub(super) fn enable(&self, socket: &tokio::net::UdpSocket, wanted: bool) -> io::Result<()> {
        self.is_wanted.store(wanted, Relaxed);
        if !wanted || self.is_enabled.load(Relaxed) {
            return Ok(());
        }
        let mut watch = self.lock();
        if watch.errors.is_none() {
            watch.errors = Some(Arc::new(duplicate(socket, Interest::PRIORITY)?));
        }
        self.was_enabled.store(true, Relaxed);
        set_option(socket, true)?;
        self.is_enabled.store(true, Relaxed);
        Ok(())
    }

    /// Whether `error` of `socket` may be about an earlier datagram, so that the system call is to be repeated.
    pub(super) fn is_pending(&self, socket: &tokio::net::UdpSocket, error: &io::Error) -> bool {
        let is_pending =
            self.was_enabled.load(Relaxed) && error.kind() != io::ErrorKind::WouldBlock;
        if is_pending {
            self.had_errors.store(true, Relaxed);
            if !self.is_wanted.load(Relaxed) && self.is_enabled.swap(false, Relaxed) {
                // Should that fail, further messages are repeated system calls and no more.
                set_option(socket, false).ok();
            }
        }
        is_pending
    }

    /// The next report.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<UnreachableReport> {
        let mut watch = self.lock();
        let Watch { errors, next, .. } = &mut *watch;
        let Some(socket) = errors else {
            return Poll::Pending;
        };
        let future = next.get_or_insert_with(|| Box::pin(next_report(Arc::clone(socket))));
        let report = ready!(future.as_mut().poll(cx));
        *next = None;
        self.had_errors.store(true, Relaxed);
        match report {
            Ok(report) => Poll::Ready(report),
            // Without reports, only timers end what is unreachable.
            Err(_) => {
                *errors = None;
                Poll::Pending
            }
        }
    }

    /// Ready if `socket`, which the reactor reports as writable, is.
    pub(super) fn poll_writable(
        &self,
        cx: &mut Context<'_>,
        socket: &tokio::net::UdpSocket,
    ) -> Poll<io::Result<()>> {
        if !self.had_errors.load(Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let mut watch = self.lock();
        let full = match watch.full.take() {
            Some(full) => full,
            None => duplicate(socket, Interest::WRITABLE)?,
        };
        match full.poll_write_ready(cx) {
            Poll::Ready(result) => Poll::Ready(result.map(drop)),
            Poll::Pending => {
                watch.full = Some(full);
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the system queue ICMP messages of `socket`, or drop those it has queued.
fn set_option(socket: &tokio::net::UdpSocket, enabled: bool) -> io::Result<()> {
    if socket.local_addr()?.is_ipv6() {
        setsockopt(socket, sockopt::Ipv6RecvErr, &enabled)?;
    }
    // A dual-stack socket sends to IPv4 too.
    setsockopt(socket, sockopt::Ipv4RecvErr, &enabled)?;
    Ok(())
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// The same socket, registered with the reactor once more.
fn duplicate(socket: &tokio::net::UdpSocket, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    Handle::try_current().map_err(io::Error::other)?;
    let duplicate = socket.as_fd().try_clone_to_owned()?;
    #[expect(
        deprecated,
        reason = "sound for an `OwnedFd`; the constructor that replaces it is unsafe for any type"
    )]
    let registered = AsyncFd::with_interest(duplicate, interest)?;
    Ok(registered)
}

async fn next_report(socket: Arc<AsyncFd<OwnedFd>>) -> io::Result<UnreachableReport> {
    loop {
        let mut ready = socket.ready(Interest::ERROR).await?;
        if let Ok(read) = ready.try_io(|socket| read(socket.get_ref()))
            && let Some(report) = read?
        {
            return Ok(report);
        }
    }
}

/// Takes the oldest message from the queue; `None` if it is not about an unreachable destination.
fn read(socket: &OwnedFd) -> io::Result<Option<UnreachableReport>> {
    let mut quote = [0; QUOTE];
    let mut control = nix::cmsg_space!([u8; CONTROL]);
    let (length, remote, what) = {
        let mut parts = [IoSliceMut::new(&mut quote)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
        let what = message.cmsgs()?.find_map(|part| unreachable(&part));
        (message.bytes, message.address, what)
    };
    let (Some(what), Some(remote)) = (what, remote.as_ref().and_then(to_address)) else {
        return Ok(None);
    };
    Ok(Some(UnreachableReport {
        what,
        remote,
        quote: quote[..length.min(QUOTE)].to_vec(),
    }))
}

fn unreachable(part: &ControlMessageOwned) -> Option<Unreachable> {
    let (ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)) =
        part
    else {
        return None;
    };
    match (error.ee_origin, error.ee_type, error.ee_code) {
        (libc::SO_EE_ORIGIN_ICMP, icmp::UNREACHABLE, icmp::NETWORK)
        | (libc::SO_EE_ORIGIN_ICMP6, icmp6::UNREACHABLE, icmp6::NO_ROUTE) => {
            Some(Unreachable::Network)
        }
        (libc::SO_EE_ORIGIN_ICMP, icmp::UNREACHABLE, icmp::HOST)
        | (libc::SO_EE_ORIGIN_ICMP6, icmp6::UNREACHABLE, icmp6::ADDRESS) => Some(Unreachable::Host),
        (libc::SO_EE_ORIGIN_ICMP, icmp::UNREACHABLE, icmp::PORT)
        | (libc::SO_EE_ORIGIN_ICMP6, icmp6::UNREACHABLE, icmp6::PORT) => Some(Unreachable::Port),
        _ => None,
    }
}

fn to_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => Some(SocketAddr::from(*v4)),
        (_, Some(v6)) => Some(SocketAddr::from(*v6)),
        _ => None,
    }
}
