//! Changes of interfaces, addresses and routes from the kernel, by a socket of rtnetlink(7).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::task::{Context, Poll};

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::runtime::NetworkChanges;

/// Messages read before the reactor is asked again.
const MAX_MESSAGES: usize = 64;

/// Bytes of a message that are read; the rest is discarded.
const MESSAGE: usize = 256;

/// The groups of messages about links, addresses and routes. A message says that something has changed; the state is read
/// from the system, so its content does not matter.
const GROUPS: libc::c_int = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE;

struct RouteSocket(AsyncFd<OwnedFd>);

/// # Errors
/// The system's error: Android refuses such sockets to apps.
pub(super) fn watch() -> io::Result<Box<dyn NetworkChanges>> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        flags,
        SockProtocol::NetlinkRoute,
    )?;
    bind(fd.as_raw_fd(), &NetlinkAddr::new(0, GROUPS.cast_unsigned()))?;
    #[expect(
        deprecated,
        reason = "sound for an `OwnedFd`; the constructor that replaces it is unsafe for any type"
    )]
    let registered = AsyncFd::with_interest(fd, Interest::READABLE)?;
    Ok(Box::new(RouteSocket(registered)))
}

impl NetworkChanges for RouteSocket {
    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut message = [0; MESSAGE];
        let mut has_changed = false;
        for _ in 0..MAX_MESSAGES {
            let mut guard = match self.0.poll_read_ready(cx) {
                Poll::Ready(Ok(guard)) => guard,
                Poll::Pending if has_changed => return Poll::Ready(()),
                // Without the reactor, nothing runs any more.
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            };
            let read = guard.try_io(|fd| {
                let read = recv(fd.as_raw_fd(), &mut message, MsgFlags::MSG_DONTWAIT);
                read.map_err(io::Error::from)
            });
            // An error says that messages were lost, which is a change too.
            has_changed |= read.is_ok();
        }
        Poll::Ready(())
    }
}
