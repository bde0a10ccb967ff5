//! Headers of IP packets, as far as a tunnel needs them.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use marline_link::Ecn;

/// The smallest MTU of a link with IPv6 (RFC 8200, section 5), which a tunnel provides in any case (RFC 9484, section 7.2).
pub const MIN_MTU: u16 = 1280;

/// Bytes of an IPv4 header without options.
const V4_HEADER: usize = 20;

/// Bytes of an IPv6 header without extensions.
const V6_HEADER: usize = 40;

/// Extension headers of IPv6 that are passed over; more are no ordinary packet.
const MAX_EXTENSIONS: usize = 8;

/// The codepoint of signalling, above which are those of telephony and of routing (RFC 4594).
const CS5: u8 = 40;

/// The port of DNS.
const DNS: u16 = 53;

pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;

/// Extension headers whose second byte is their length in units of eight bytes, less one: hop-by-hop options, routing,
/// destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];

/// The fragment header of IPv6.
const FRAGMENT: u8 = 44;

/// The fields that are read of the header of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The protocol of the payload; for IPv6, that after the extension headers.
    pub protocol: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// The differentiated services codepoint (RFC 2474).
    pub dscp: u8,
    /// Whether a router may not fragment it: the DF bit, or IPv6.
    pub dont_fragment: bool,
    /// The ports of TCP and UDP, unless it is a fragment.
    ports: [u16; 2],
    /// Where the payload begins, unless it is a fragment.
    payload: Option<usize>,
}

/// Why bytes are not an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// They are shorter than the header.
    #[error("the packet is shorter than its header")]
    Short,
    /// Another version than 4 or 6.
    #[error("not a packet of IPv4 or IPv6 but version {0}")]
    Version(u8),
    /// The header announces another length than the packet has.
    #[error("the header announces {announced} bytes, the packet has {actual}")]
    Length {
        /// Bytes that the header announces.
        announced: usize,
        /// Bytes of the packet.
        actual: usize,
    },
    /// There are more extension headers than ordinary packets have, or an incomplete one.
    #[error("the extension headers of IPv6 are not valid")]
    Extensions,
}

impl Header {
    /// Reads the header of a whole packet.
    ///
    /// # Errors
    /// See [`PacketError`].
    pub fn parse(packet: &[u8]) -> Result<Self, PacketError> {
        match packet.first().map(|first| first >> 4) {
            Some(4) => Self::parse_v4(packet),
            Some(6) => Self::parse_v6(packet),
            Some(version) => Err(PacketError::Version(version)),
            None => Err(PacketError::Short),
        }
    }

    fn parse_v4(packet: &[u8]) -> Result<Self, PacketError> {
        let header: &[u8; V4_HEADER] = packet.first_chunk().ok_or(PacketError::Short)?;
        let length = usize::from(header[0] & 0x0f) * 4;
        if length < V4_HEADER || packet.len() < length {
            return Err(PacketError::Short);
        }
        check_length(be16(&header[2..]).into(), packet.len())?;
        let fragment = be16(&header[6..]);
        let is_fragment = fragment & 0x3fff != 0;
        let protocol = header[9];
        Ok(Self {
            source: Ipv4Addr::from_bits(be32(&header[12..])).into(),
            destination: Ipv4Addr::from_bits(be32(&header[16..])).into(),
            protocol,
            ecn: ecn_of(header[1]),
            dscp: header[1] >> 2,
            dont_fragment: fragment & 0x4000 != 0,
            ports: match is_fragment {
                true => [0; 2],
                false => ports(protocol, &packet[length..]),
            },
            payload: (!is_fragment).then_some(length),
        })
    }

    fn parse_v6(packet: &[u8]) -> Result<Self, PacketError> {
        let header: &[u8; V6_HEADER] = packet.first_chunk().ok_or(PacketError::Short)?;
        check_length(usize::from(be16(&header[4..])) + V6_HEADER, packet.len())?;
        let address = |at: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&header[at..at + 16]);
            IpAddr::from(Ipv6Addr::from(bytes))
        };
        let Upper {
            protocol,
            payload,
            is_fragment,
        } = upper(header[6], &packet[V6_HEADER..])?;
        Ok(Self {
            source: address(8),
            destination: address(24),
            protocol,
            ecn: ecn_of(header[1] >> 4),
            dscp: (be16(header) >> 6) as u8 & 0x3f,
            dont_fragment: true,
            ports: match is_fragment {
                true => [0; 2],
                false => ports(protocol, payload),
            },
            payload: (!is_fragment).then_some(packet.len() - payload.len()),
        })
    }

    /// Whether a packet should arrive soon and for certain: its codepoint is CS5 or above, such as EF (RFC 4594), or it is of DNS.
    pub(crate) fn is_urgent(&self) -> bool {
        self.dscp >= CS5 || self.ports.contains(&DNS)
    }

    /// Where the payload begins in the packet, after options and extension headers; `None` for a fragment.
    pub(crate) fn payload(&self) -> Option<usize> {
        self.payload
    }

    /// The hash of its flow: addresses, protocol and ports. `keys` keep senders from choosing flows with one hash.
    pub fn flow(&self, keys: &RandomState) -> u64 {
        keys.hash_one((self.source, self.destination, self.protocol, self.ports))
    }
}

/// The header after the extension headers of IPv6.
struct Upper<'a> {
    protocol: u8,
    payload: &'a [u8],
    is_fragment: bool,
}

fn upper(mut protocol: u8, mut payload: &[u8]) -> Result<Upper<'_>, PacketError> {
    let mut is_fragment = false;
    for _ in 0..MAX_EXTENSIONS {
        let length = match (protocol, payload) {
            (FRAGMENT, [_, ..]) => {
                is_fragment = true;
                8
            }
            (_, [_, length, ..]) if EXTENSIONS.contains(&protocol) => {
                8 * (usize::from(*length) + 1)
            }
            _ if protocol == FRAGMENT || EXTENSIONS.contains(&protocol) => {
                return Err(PacketError::Extensions);
            }
            _ => {
                return Ok(Upper {
                    protocol,
                    payload,
                    is_fragment,
                });
            }
        };
        protocol = payload[0];
        payload = payload.get(length..).ok_or(PacketError::Extensions)?;
        // What follows the header of a later fragment is no header.
        if is_fragment {
            return Ok(Upper {
                protocol,
                payload: &[],
                is_fragment,
            });
        }
    }
    Err(PacketError::Extensions)
}

fn check_length(announced: usize, actual: usize) -> Result<(), PacketError> {
    match announced == actual {
        true => Ok(()),
        false => Err(PacketError::Length { announced, actual }),
    }
}

fn ports(protocol: u8, payload: &[u8]) -> [u16; 2] {
    match payload.first_chunk::<4>() {
        Some(ports) if matches!(protocol, TCP | UDP) => [be16(ports), be16(&ports[2..])],
        _ => [0; 2],
    }
}

/// The first two bytes, of at least two.
fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

/// The first four bytes, of at least four.
fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn ecn_of(traffic_class: u8) -> Ecn {
    match traffic_class & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Sets the mark Congestion Experienced in a packet whose header was parsed (RFC 3168).
pub fn mark_congestion(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= V4_HEADER => {
            let before = be16(packet);
            packet[1] |= 0b11;
            let after = be16(packet);
            let checksum = updated(be16(&packet[10..]), before, after);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(6) if packet.len() >= V6_HEADER => packet[1] |= 0b11 << 4,
        _ => {}
    }
}

/// The checksum of a header in which one 16-bit word changed (RFC 1624).
pub(crate) fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// The checksum of the Internet (RFC 1071) over `parts`, all but the last of an even length.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    !fold(parts.iter().map(|part| sum(part)).sum())
}

/// The sum of the 16-bit words of `bytes`, for [`fold`]. Sums of parts of an even length can be added.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    // Words of 32 bits have the same sum once it is folded.
    let (words, rest) = bytes.as_chunks::<4>();
    let words: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_be_bytes(*word)))
        .sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words + u64::from(u32::from_be_bytes(last))
}

/// The sum in 16 bits, with its carries.
pub(crate) fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether packets from and to `address` may pass a tunnel: it is unicast, and has a meaning beyond one link and one host (RFC
/// 9484, section 7.1).
pub fn is_routable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_link_local()
                && !address.is_multicast()
                && !address.is_broadcast()
                // "This network" and the reserved class E.
                && !matches!(address.octets()[0], 0 | 240..)
        }
        IpAddr::V6(address) => {
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_unicast_link_local()
                && !address.is_multicast()
                && address.to_ipv4_mapped().is_none()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet of UDP between these addresses, of one family.
    pub(crate) fn udp(source: &str, destination: &str, payload: usize) -> Vec<u8> {
        let (source, destination): (IpAddr, IpAddr) =
            (source.parse().unwrap(), destination.parse().unwrap());
        let udp_length = (8 + payload) as u16;
        let mut packet = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, UDP, 0, 0];
                packet[2..4].copy_from_slice(&(20 + udp_length).to_be_bytes());
                packet.extend(source.octets());
                packet.extend(destination.octets());
                let sum = checksum(&[&packet]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
                packet
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut packet = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
                packet[4..6].copy_from_slice(&udp_length.to_be_bytes());
                packet.extend(source.octets());
                packet.extend(destination.octets());
                packet
            }
            _ => panic!("two families"),
        };
        for word in [1000, 2000, udp_length, 0] {
            packet.extend(word.to_be_bytes());
        }
        packet.resize(packet.len() + payload, 0xa5);
        packet
    }

    #[test]
    fn the_fields_of_both_versions_are_read() {
        for (source, destination) in [("10.0.0.2", "192.0.2.1"), ("fd00::2", "2001:db8::1")] {
            let packet = udp(source, destination, 5);
            let header = Header::parse(&packet).unwrap();
            assert_eq!(header.source.to_string(), source);
            assert_eq!(header.destination.to_string(), destination);
            assert_eq!(header.protocol, UDP);
            assert_eq!(header.ports, [1000, 2000]);
            assert_eq!(header.dont_fragment, header.source.is_ipv6());
        }
    }

    #[test]
    fn the_protocol_of_ipv6_is_that_after_the_extension_headers() {
        let plain = udp("fd00::2", "2001:db8::1", 0);
        let mut packet = plain.clone();
        packet[6] = 0;
        packet[5] += 8;
        packet.splice(40..40, [UDP, 0, 1, 4, 0, 0, 0, 0]);
        let header = Header::parse(&packet).unwrap();
        assert_eq!((header.protocol, header.ports), (UDP, [1000, 2000]));
        // Without an end.
        let mut endless = plain[..40].to_vec();
        endless[5] = 80;
        endless[6] = 0;
        endless.extend([0; 80]);
        assert_eq!(Header::parse(&endless), Err(PacketError::Extensions));
    }

    #[test]
    fn packets_of_another_length_than_their_header_says_are_refused() {
        for (source, destination) in [("10.0.0.2", "192.0.2.1"), ("fd00::2", "2001:db8::1")] {
            let packet = udp(source, destination, 5);
            let longer = [&packet[..], &[0]].concat();
            for packet in [&packet[..packet.len() - 1], &longer] {
                let error = Header::parse(packet).unwrap_err();
                assert!(matches!(error, PacketError::Length { .. }), "{error}");
            }
        }
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        let mut packet = udp("10.0.0.2", "192.0.2.1", 5);
        mark_congestion(&mut packet);
        assert_eq!(checksum(&[&packet[..20]]), 0);
        assert_eq!(Header::parse(&packet).unwrap().ecn, Ecn::Ce);
        let mut packet = udp("fd00::2", "2001:db8::1", 5);
        mark_congestion(&mut packet);
        assert_eq!(Header::parse(&packet).unwrap().ecn, Ecn::Ce);
    }

    #[test]
    fn addresses_of_one_link_or_host_do_not_pass() {
        for (address, passes) in [
            ("192.0.2.1", true),
            ("10.0.0.1", true),
            ("127.0.0.1", false),
            ("169.254.1.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("0.0.0.0", false),
            ("2001:db8::1", true),
            ("fd00::1", true),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
        ] {
            assert_eq!(is_routable(address.parse().unwrap()), passes, "{address}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), first: u8) {
            let _ = Header::parse(&bytes);
            for version in [0x45, 0x60, 0x40 | first & 0xf] {
                if let Some(byte) = bytes.first_mut() {
                    *byte = version;
                }
                // With a length that is right.
                let length = bytes.len();
                if length >= 6 {
                    let (v4, v6) = (length as u16, length.saturating_sub(40) as u16);
                    bytes[2..4].copy_from_slice(&v4.to_be_bytes());
                    bytes[4..6].copy_from_slice(&v6.to_be_bytes());
                }
                let _ = Header::parse(&bytes);
                mark_congestion(&mut bytes);
            }
        }
    }
}
