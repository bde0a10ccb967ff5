//! The bytes that the peer of a connection has acknowledged.

use std::os::fd::AsFd;
use std::sync::LazyLock;

use nix::libc::{IPPROTO_TCP, TCP_INFO};
use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};

use super::multipath::{MPTCP_INFO, SOL_MPTCP};

/// Whether `struct tcp_info` has [`BYTES_RECEIVED`].
static COUNTS_BYTES: LazyLock<bool> = LazyLock::new(|| {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.is_ok_and(|release| version(&release) >= Some((4, 1)))
});

sockopt_impl!(
    /// The beginning of `struct tcp_info` of `linux/tcp.h`, in words of 64 bits.
    TcpInfo,
    GetOnly,
    IPPROTO_TCP,
    TCP_INFO,
    [u64; 17]
);

/// `tcpi_bytes_acked`.
const BYTES_ACKED: usize = 15;

/// `tcpi_bytes_received`.
const BYTES_RECEIVED: usize = 16;

sockopt_impl!(
    /// The beginning of `struct mptcp_info` of `linux/mptcp.h`, in words of 64 bits.
    MptcpInfo,
    GetOnly,
    SOL_MPTCP,
    MPTCP_INFO,
    [u64; 4]
);

/// `mptcpi_snd_una`.
const SND_UNA: usize = 3;

/// A count of acknowledged bytes with an arbitrary initial value.
pub(super) fn count(socket: impl AsFd) -> Option<u64> {
    if let Ok(state) = getsockopt(&socket, MptcpInfo) {
        return Some(state[SND_UNA]);
    }
    if !*COUNTS_BYTES {
        return None;
    }
    let state = getsockopt(&socket, TcpInfo).ok()?;
    // Some systems that emulate Linux have the field, but do not count.
    (state[BYTES_RECEIVED] > 0).then_some(state[BYTES_ACKED])
}

/// The first two numbers of a release of Linux.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert_eq!(version("3.10.0-1160.el7.x86_64\n"), Some((3, 10)));
        assert_eq!(version("6.18-rc1\n"), Some((6, 18)));
        assert!(version("4.4.0\n") > version("4.1"));
        assert_eq!(version("unknown"), None);
    }
}
