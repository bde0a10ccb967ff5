//! Equal-cost multipath routing (ECMP): the mapping of flows to paths.

use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// The hash of the 5-tuple by which routers choose among equal-cost paths: path = hash modulo number of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcmpHash {
    /// Exclusive or of the five fields, as in the literature. With two paths only the parities matter:
    /// between two given addresses, only that of the source port matters. Hosts that allocate
    /// ephemeral ports of one parity then use one path for all flows.
    Xor,
    /// A hash that mixes all bits of the five fields, as in routers.
    #[default]
    Mixed,
}

impl EcmpHash {
    /// The hash of the flow of `protocol` (6 is TCP, 17 is UDP) from `source` to `destination`, for
    /// [`Packet::flow`](crate::Packet::flow).
    pub fn of(self, source: SocketAddr, destination: SocketAddr, protocol: u8) -> u64 {
        let numbers = [
            number(source.ip()),
            number(destination.ip()),
            source.port().into(),
            destination.port().into(),
            protocol.into(),
        ];
        match self {
            Self::Xor => numbers.into_iter().fold(0, |hash, number| hash ^ number),
            Self::Mixed => numbers
                .into_iter()
                .fold(0, |hash, number| mix(hash ^ number)),
        }
    }
}

/// The hash of an address, for [`Packet::hosts`](crate::Packet::hosts).
pub fn host_hash(address: IpAddr) -> u32 {
    (mix(number(address)) >> 32) as u32
}

/// The index of the path that a flow takes, below `paths`; 0 if `paths` is 0.
pub const fn path(flow: u64, paths: usize) -> usize {
    match flow.checked_rem(paths as u64) {
        Some(path) => path as usize,
        None => 0,
    }
}

/// An address as an integer; for IPv6, the exclusive or of both halves.
fn number(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits >> 64) as u64 ^ bits as u64
        }
    }
}

/// One step of SplitMix64.
const fn mix(hash: u64) -> u64 {
    let mut z = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
