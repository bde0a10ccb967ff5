//! Networks of clients, as far as addresses show them.

use std::net::{IpAddr, Ipv6Addr};

/// The network of an address, which shares the budgets of a server: /24 of IPv4, /48 of IPv6. A site gets at least
/// one of them, so that more addresses of one owner get no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Prefix(IpAddr);

impl Prefix {
    pub(super) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                IpAddr::from([a, b, c, 0])
            }
            IpAddr::V6(address) => {
                let [a, b, c, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn prefix(address: &str) -> Prefix {
        Prefix::of(address.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_network_have_one_prefix() {
        for [one, other] in [
            ["192.0.2.1", "192.0.2.255"],
            ["192.0.2.1", "::ffff:192.0.2.7"],
            ["2001:db8:1::1", "2001:db8:1:ffff::2"],
        ] {
            assert_eq!(prefix(one), prefix(other));
        }
        for [one, other] in [
            ["192.0.2.1", "192.0.3.1"],
            ["2001:db8:1::1", "2001:db8:2::1"],
        ] {
            assert_ne!(prefix(one), prefix(other));
        }
    }
}
