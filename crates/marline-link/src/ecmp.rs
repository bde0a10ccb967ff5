//! Which of several paths of equal cost a flow takes.

use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// How routers hash a flow to choose among paths of equal cost: the hash, modulo their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcmpHash {
    /// The exclusive or of the five numbers, as the literature writes it. For two paths only the
    /// parities count: between two given addresses, that of the source port alone. Systems that hand
    /// out ports of one parity put all their flows on one path.
    Xor,
    /// Every bit of the five counts, as in routers.
    #[default]
    Mixed,
}

impl EcmpHash {
    /// The hash of what `protocol` (6 is TCP, 17 is UDP) carries from `source` to `destination`, for
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

/// The path that a flow takes, below `paths`; of none, path 0.
pub const fn path(flow: u64, paths: usize) -> usize {
    match flow.checked_rem(paths as u64) {
        Some(path) => path as usize,
        None => 0,
    }
}

/// An address as a number; of IPv6, both halves folded into one.
fn number(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits >> 64) as u64 ^ bits as u64
        }
    }
}

/// A step of SplitMix64.
const fn mix(hash: u64) -> u64 {
    let mut z = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
