//! Which flow a packet belongs to.

use std::net::{IpAddr, SocketAddr};

/// How the 5-tuple becomes [`Packet::flow`](marline_link::Packet::flow): what fair queues tell flows
/// apart by, and what chooses among equal-cost paths (the flow modulo their number).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlowHash {
    /// Every bit of the 5-tuple counts for every bit of the hash, as in today's routers.
    #[default]
    Mixed,
    /// The exclusive or of the five fields. Its lowest bit is the parity of the ports: hosts that
    /// count ports in steps of two put all their flows on one of two paths.
    Xor,
}

impl FlowHash {
    /// The flow of what `protocol` (17 is UDP, 6 is TCP) carries from `source` to `destination`.
    pub fn of(self, source: SocketAddr, destination: SocketAddr, protocol: u8) -> u64 {
        let fields = [
            number(source.ip()),
            number(destination.ip()),
            source.port().into(),
            destination.port().into(),
            protocol.into(),
        ];
        match self {
            Self::Mixed => fields.into_iter().fold(0, |hash, field| mix(hash ^ field)),
            Self::Xor => fields.into_iter().fold(0, |hash, field| hash ^ field),
        }
    }
}

/// The address as an integer; the halves of an IPv6 address are folded.
fn number(ip: IpAddr) -> u64 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => {
            let bits = u128::from(ip);
            (bits >> 64) as u64 ^ bits as u64
        }
    }
}

/// A step of SplitMix64.
const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: u16) -> SocketAddr {
        ([10, 1, 0, 1], port).into()
    }

    const SERVER: SocketAddr =
        SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 2)), 443);

    #[test]
    fn mixed_hashes_spread_ports_in_steps_of_two() {
        let odd = (0..1000)
            .filter(|i| FlowHash::Mixed.of(port(40_000 + 2 * i), SERVER, 17) % 2 == 1)
            .count();
        assert!((400..600).contains(&odd), "{odd}");
    }

    #[test]
    fn literal_hashes_follow_the_parity_of_the_port() {
        let path = |i| FlowHash::Xor.of(port(i), SERVER, 17) % 2;
        assert_ne!(path(40_000), path(40_001));
        assert_eq!(path(40_000), path(40_002));
        // 10.1.0.1 ^ 10.1.0.2 ^ 40000 ^ 443 ^ 17
        assert_eq!(
            FlowHash::Xor.of(port(40_000), SERVER, 17),
            3 ^ 40_000 ^ 443 ^ 17
        );
    }
}
