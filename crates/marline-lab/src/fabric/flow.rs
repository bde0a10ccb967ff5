//! Which flow a packet belongs to.

use std::net::SocketAddr;

use marline_link::{EcmpHash, FiveTuple};

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
        let hash = match self {
            Self::Mixed => EcmpHash::Mixed,
            Self::Xor => EcmpHash::Xor,
        };
        hash.hash(&FiveTuple {
            source: source.ip(),
            destination: destination.ip(),
            source_port: source.port(),
            destination_port: destination.port(),
            protocol,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn port(port: u16) -> SocketAddr {
        ([10, 1, 0, 1], port).into()
    }

    const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2)), 443);

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
