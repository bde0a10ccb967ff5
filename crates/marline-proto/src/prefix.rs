//! Address prefixes, which approximate hosts and networks of peers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The leading bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The first `bits` bits of `address`, all of them if it has fewer. An IPv4-mapped IPv6 address is
    /// treated as the IPv4 address.
    pub fn new(address: IpAddr, bits: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Self {
                    address: Ipv4Addr::from_bits(address.to_bits() & mask).into(),
                    bits,
                }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Self {
                    address: Ipv6Addr::from_bits(address.to_bits() & mask).into(),
                    bits,
                }
            }
        }
    }

    /// The prefix that counts as one host: an IPv4 address or an IPv6 /64, the smallest assignment to a host.
    pub fn of_host(address: IpAddr) -> Self {
        Self::of(address, 32, 64)
    }

    /// The prefix that counts as one network, with one share of a server's resources: an IPv4 /24 or an IPv6 /48, the
    /// smallest announced on the Internet.
    pub fn of_network(address: IpAddr) -> Self {
        Self::of(address, 24, 48)
    }

    fn of(address: IpAddr, v4: u8, v6: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(_) => Self::new(address, v4),
            IpAddr::V6(_) => Self::new(address, v6),
        }
    }

    /// The lowest address with this prefix.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Length in bits.
    pub fn bits(&self) -> u8 {
        self.bits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn addresses_of_one_network_have_one_prefix() {
        for [one, other] in [
            ["192.0.2.1", "192.0.2.255"],
            ["192.0.2.1", "::ffff:192.0.2.7"],
            ["2001:db8:1::1", "2001:db8:1:ffff::2"],
        ] {
            assert_eq!(Prefix::of_network(ip(one)), Prefix::of_network(ip(other)));
        }
        for [one, other] in [
            ["192.0.2.1", "192.0.3.1"],
            ["2001:db8:1::1", "2001:db8:2::1"],
        ] {
            assert_ne!(Prefix::of_network(ip(one)), Prefix::of_network(ip(other)));
        }
    }

    #[test]
    fn a_host_has_one_ipv4_address_or_an_ipv6_64() {
        for [one, other] in [
            ["192.0.2.1", "::ffff:192.0.2.1"],
            ["2001:db8:1:2::1", "2001:db8:1:2:ffff::2"],
        ] {
            assert_eq!(Prefix::of_host(ip(one)), Prefix::of_host(ip(other)));
        }
        for [one, other] in [
            ["192.0.2.1", "192.0.2.2"],
            ["2001:db8:1:2::1", "2001:db8:1:3::1"],
        ] {
            assert_ne!(Prefix::of_host(ip(one)), Prefix::of_host(ip(other)));
        }
    }

    proptest! {
        #[test]
        fn an_ipv6_prefix_keeps_exactly_its_leading_bits(bits: u8, address: u128, other: u128) {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0);
            let of = |address: u128| Prefix::new(Ipv6Addr::from_bits(address).into(), bits);
            let is_v4 = |address: u128| Ipv6Addr::from_bits(address).to_ipv4_mapped().is_some();
            prop_assume!(!is_v4(address) && !is_v4(other));
            prop_assert_eq!(of(address) == of(other), address & mask == other & mask);
            prop_assert_eq!(of(address), of(address & mask | other & !mask));
            prop_assert_eq!(of(address).bits(), bits.min(128));
        }

        #[test]
        fn an_ipv4_prefix_keeps_exactly_its_leading_bits(bits: u8, address: u32, other: u32) {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
            let of = |address: u32| Prefix::new(Ipv4Addr::from_bits(address).into(), bits);
            prop_assert_eq!(of(address) == of(other), address & mask == other & mask);
            prop_assert_eq!(of(address).address(), IpAddr::from(Ipv4Addr::from_bits(address & mask)));
        }
    }
}
