//! The state of connections over Multipath TCP.

use std::io;

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};
use socket2::Socket;

/// Of `linux/socket.h`.
pub(super) const SOL_MPTCP: i32 = 284;

/// Of `linux/mptcp.h`.
pub(super) const MPTCP_INFO: i32 = 1;

sockopt_impl!(
    /// The first field of `struct mptcp_info`: subflows beyond the first one.
    FurtherSubflows,
    GetOnly,
    SOL_MPTCP,
    MPTCP_INFO,
    u8
);

pub(super) fn subflows(socket: &Socket) -> io::Result<u32> {
    let further = getsockopt(socket, FurtherSubflows)?;
    Ok(u32::from(further) + 1)
}
