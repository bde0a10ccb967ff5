//! The bytes that the peer of a connection has acknowledged.

use std::os::fd::AsFd;
use std::sync::LazyLock;

use nix::libc::{IPPROTO_TCP, TCP_INFO};
use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};

use super::TcpProtocol;
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

/// A count of the bytes that the peer of a connection acknowledges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// That of the connection, which is known once it is accepted: the wrong one costs a system call each time.
    protocol: TcpProtocol,
    /// The system's count at the beginning.
    start: u64,
}

impl Acknowledged {
    /// Begins to count those of `socket`, on which data has arrived; `None` if the system does not count them.
    pub(crate) fn begin(socket: impl AsFd) -> Option<Self> {
        let protocols = [TcpProtocol::Multipath, TcpProtocol::Tcp];
        protocols.into_iter().find_map(|protocol| {
            let start = count(&socket, protocol)?;
            Some(Self { protocol, start })
        })
    }

    /// Bytes since the beginning; `None` if the system no longer knows.
    pub(crate) fn since(self, socket: impl AsFd) -> Option<u64> {
        let now = count(socket, self.protocol)?;
        Some(now.wrapping_sub(self.start))
    }
}

fn count(socket: impl AsFd, protocol: TcpProtocol) -> Option<u64> {
    match protocol {
        TcpProtocol::Multipath => Some(getsockopt(&socket, MptcpInfo).ok()?[SND_UNA]),
        TcpProtocol::Tcp if *COUNTS_BYTES => {
            let state = getsockopt(&socket, TcpInfo).ok()?;
            // Some systems that emulate Linux have the field, but do not count.
            (state[BYTES_RECEIVED] > 0).then_some(state[BYTES_ACKED])
        }
        TcpProtocol::Tcp => None,
    }
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
