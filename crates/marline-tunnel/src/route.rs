//! The capsule about routes: ROUTE_ADVERTISEMENT (RFC 9484, section 4.7.3).

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};
use marline_h3::capsule::{Capsule, CapsuleType};
use marline_wire::Reader;

use crate::address::{AddressError, encode_address, read_address};
use crate::packet::Header;

/// The type of ROUTE_ADVERTISEMENT.
pub const ROUTE_ADVERTISEMENT: CapsuleType = CapsuleType::new(0x03);

/// Ranges of one capsule; the IPv4 Internet without its reserved blocks are some tens.
pub const MAX_RANGES: usize = 1024;

/// Bytes of the value of a capsule with these: a version, two addresses and a protocol each.
pub const MAX_RANGES_BYTES: usize = MAX_RANGES * (1 + 2 * 16 + 1);

/// Addresses in a row to which packets may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    start: IpAddr,
    /// The last address, of the same family.
    end: IpAddr,
    /// The only protocol of the payload; `None` for any.
    protocol: Option<u8>,
}

/// Why the value of a capsule is malformed. The receiver abandons the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// An address that cannot be read.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The value ends within a range.
    #[error("the capsule ends within a range")]
    Truncated,
    /// A range ends before it starts.
    #[error("the range from {start} to {end} ends before it starts")]
    Reversed {
        /// Its first address.
        start: IpAddr,
        /// Its last address.
        end: IpAddr,
    },
    /// A range does not follow the one before: they are ordered by version, protocol and address, and do not overlap.
    #[error("the range from {start} is not after the one before, or overlaps it")]
    Order {
        /// Its first address.
        start: IpAddr,
    },
    /// More than [`MAX_RANGES`].
    #[error("more than {MAX_RANGES} ranges in one capsule")]
    TooMany,
}

impl Range {
    /// The addresses of a prefix, for payloads of `protocol`, or of any.
    pub fn of(prefix: IpNet, protocol: Option<u8>) -> Self {
        Self {
            start: prefix.network(),
            end: prefix.broadcast(),
            // 0 is any (section 4.7.3).
            protocol: protocol.filter(|protocol| *protocol != 0),
        }
    }

    /// Whether a packet with this header may be sent to it. ICMP may in any case (RFC 9484, section 4.7.3).
    pub fn allows(&self, header: &Header) -> bool {
        let icmp = if header.destination.is_ipv4() { 1 } else { 58 };
        let has_protocol = self
            .protocol
            .is_none_or(|protocol| protocol == header.protocol || header.protocol == icmp);
        has_protocol
            && self.start.is_ipv4() == header.destination.is_ipv4()
            && (self.start..=self.end).contains(&header.destination)
    }

    /// The prefixes that have its addresses, and no others.
    pub fn prefixes(&self) -> Vec<IpNet> {
        match (self.start, self.end) {
            (IpAddr::V4(start), IpAddr::V4(end)) => {
                Ipv4Subnets::new(start, end, 0).map(IpNet::V4).collect()
            }
            (IpAddr::V6(start), IpAddr::V6(end)) => {
                Ipv6Subnets::new(start, end, 0).map(IpNet::V6).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The order of the capsule: by version, protocol, and address.
    fn key(&self) -> (bool, u8, IpAddr) {
        (self.start.is_ipv6(), self.protocol.unwrap_or(0), self.start)
    }

    /// Whether `self` may follow `before` in a capsule.
    fn follows(&self, before: &Self) -> bool {
        let (version, protocol, _) = self.key();
        let (version_before, protocol_before, _) = before.key();
        match (version, protocol).cmp(&(version_before, protocol_before)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => before.end < self.start,
            std::cmp::Ordering::Greater => true,
        }
    }
}

/// The ranges of these, in the order of the capsule, those that touch or overlap as one.
pub fn ordered(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable_by_key(Range::key);
    let mut ordered: Vec<Range> = Vec::new();
    for range in ranges {
        match ordered.last_mut() {
            Some(last)
                if last.key().0 == range.key().0
                    && last.protocol == range.protocol
                    && range.start <= last.end =>
            {
                last.end = last.end.max(range.end);
            }
            _ => ordered.push(range),
        }
    }
    ordered
}

/// The capsule ROUTE_ADVERTISEMENT with all `ranges` that the sender carries packets to from now on, [ordered].
pub fn advertisement(ranges: &[Range]) -> Capsule {
    let mut value = Vec::new();
    for range in ranges {
        encode_address(range.start, true, &mut value);
        encode_address(range.end, false, &mut value);
        value.push(range.protocol.unwrap_or(0));
    }
    Capsule {
        kind: ROUTE_ADVERTISEMENT,
        value: value.into(),
    }
}

/// Reads the value of ROUTE_ADVERTISEMENT.
///
/// # Errors
/// See [`RouteError`].
pub fn decode(value: &[u8]) -> Result<Vec<Range>, RouteError> {
    let mut reader = Reader::new(value);
    let mut ranges: Vec<Range> = Vec::new();
    while !reader.is_empty() {
        if ranges.len() == MAX_RANGES {
            return Err(RouteError::TooMany);
        }
        let cut = |_| RouteError::Truncated;
        let version = reader.u8().map_err(cut)?;
        let start = read_address(&mut reader, version)?;
        let end = read_address(&mut reader, version)?;
        let protocol = reader.u8().map_err(cut)?;
        if end < start {
            return Err(RouteError::Reversed { start, end });
        }
        let range = Range {
            start,
            end,
            protocol: Some(protocol).filter(|protocol| *protocol != 0),
        };
        if ranges.last().is_some_and(|before| !range.follows(before)) {
            return Err(RouteError::Order { start });
        }
        ranges.push(range);
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::packet::tests::udp;

    fn any_range() -> impl Strategy<Value = Range> {
        let v4 = (any::<u32>(), 0..=32_u8)
            .prop_map(|(bits, length)| IpNet::new(Ipv4Addr::from(bits).into(), length).unwrap());
        let v6 = (any::<u128>(), 0..=128_u8)
            .prop_map(|(bits, length)| IpNet::new(Ipv6Addr::from(bits).into(), length).unwrap());
        (
            prop_oneof![v4, v6],
            prop_oneof![Just(None), (0..20_u8).prop_map(Some)],
        )
            .prop_map(|(prefix, protocol)| Range::of(prefix, protocol))
    }

    proptest! {
        #[test]
        fn ranges_that_are_ordered_decode_to_the_same(
            ranges in proptest::collection::vec(any_range(), 0..40),
        ) {
            let ranges = ordered(ranges);
            let capsule = advertisement(&ranges);
            prop_assert!(capsule.value.len() <= MAX_RANGES_BYTES);
            prop_assert_eq!(decode(&capsule.value), Ok(ranges));
        }

        #[test]
        fn any_value_is_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(ranges) = decode(&value) {
                prop_assert_eq!(decode(&advertisement(&ranges).value), Ok(ranges));
            }
        }

        #[test]
        fn prefixes_have_the_addresses_of_their_range(first: u32, second: u32) {
            let (start, end) = (first.min(second), first.max(second));
            let range = Range {
                start: Ipv4Addr::from(start).into(),
                end: Ipv4Addr::from(end).into(),
                protocol: None,
            };
            let prefixes = range.prefixes();
            let size: u64 = prefixes.iter().map(|prefix| 1_u64 << (32 - prefix.prefix_len())).sum();
            prop_assert_eq!(size, u64::from(end - start) + 1);
            prop_assert_eq!(prefixes[0].network(), range.start);
            prop_assert_eq!(prefixes[prefixes.len() - 1].broadcast(), range.end);
        }
    }

    /// RFC 9484, section 4.7.3.
    #[test]
    fn ranges_that_overlap_or_are_not_ordered_are_refused() {
        let range = |start: &str, end: &str, protocol| Range {
            start: start.parse().unwrap(),
            end: end.parse().unwrap(),
            protocol,
        };
        let decoded = |ranges: &[Range]| decode(&advertisement(ranges).value);
        let a = range("192.0.2.0", "192.0.2.9", None);
        let after = range("192.0.2.10", "192.0.2.10", None);
        let udp = range("10.0.0.0", "10.0.0.1", Some(17));
        let v6 = range("::", "::1", None);
        assert!(decoded(&[a, after, udp, v6]).is_ok());
        let overlapping = range("192.0.2.9", "192.0.2.10", None);
        for ranges in [[a, overlapping], [after, a], [udp, a], [v6, a], [a, a]] {
            let error = decoded(&ranges).unwrap_err();
            assert!(matches!(error, RouteError::Order { .. }), "{error}");
        }
        let reversed = decoded(&[range("192.0.2.9", "192.0.2.0", None)]);
        assert!(matches!(reversed, Err(RouteError::Reversed { .. })));
        let cut = advertisement(&[a]).value;
        for length in 1..cut.len() {
            assert!(decode(&cut[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_range_allows_its_protocol_and_icmp() {
        let header = |destination| Header::parse(&udp("10.0.0.2", destination, 0)).unwrap();
        let range = |protocol| Range::of("192.0.2.0/24".parse().unwrap(), protocol);
        assert!(range(None).allows(&header("192.0.2.255")));
        assert!(range(Some(17)).allows(&header("192.0.2.1")));
        assert!(!range(Some(6)).allows(&header("192.0.2.1")));
        assert!(!range(None).allows(&header("192.0.3.1")));
        let mut ping = header("192.0.2.1");
        ping.protocol = 1;
        assert!(range(Some(6)).allows(&ping));
        // The whole of the other family.
        assert!(!Range::of("::/0".parse().unwrap(), None).allows(&ping));
    }
}
