//! The fields of a TCP segment for counting its bytes.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes of an IPv4 header without options.
const IP: usize = 20;
/// Bytes of a TCP header without options.
const HEADER: usize = 20;
const TCP: u8 = 6;
const SYN: u8 = 0x02;

/// A TCP segment (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its source.
    pub(super) from: SocketAddrV4,
    /// Its destination.
    pub(super) to: SocketAddrV4,
    /// The sequence number of its first byte, or of the SYN.
    pub(super) number: u32,
    /// Whether SYN is set.
    pub(super) is_syn: bool,
    /// Bytes of payload.
    pub(super) payload: u32,
}

impl Segment {
    /// The segment in a complete IPv4 packet; `None` if it is a fragment, or of another protocol.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let ip = usize::from(packet.first()? & 0x0f) * 4;
        let is_fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff != 0;
        if *packet.get(9)? != TCP || is_fragment || ip < IP {
            return None;
        }
        let addresses: &[u8; 8] = packet.get(12..IP)?.first_chunk()?;
        let [a, b, c, d, e, f, g, h] = *addresses;
        let header: &[u8; HEADER] = packet.get(ip..)?.first_chunk()?;
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let len = usize::from(header[12] >> 4) * 4;
        let payload = packet.len().checked_sub(ip + len.max(HEADER))?;
        Some(Self {
            from: SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port(0)),
            to: SocketAddrV4::new(Ipv4Addr::new(e, f, g, h), port(2)),
            number: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            is_syn: header[13] & SYN != 0,
            payload: u32::try_from(payload).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet() -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 55, 0, 1, 0x40, 0, 64, TCP, 0, 0];
        bytes.extend([10, 77, 0, 2, 10, 77, 0, 1, 0x4e, 0x20, 0x14, 0x51]);
        bytes.extend([1, 2, 3, 4, 0, 0, 0, 0, 0x80, 0x10, 0, 1, 0, 0, 0, 0]);
        // Twelve bytes of options, and three of payload.
        bytes.extend([1; 12]);
        bytes.extend([9; 3]);
        bytes
    }

    #[test]
    fn header_fields_are_parsed() {
        let segment = Segment::of(&packet()).unwrap();
        assert_eq!(segment.from, "10.77.0.2:20000".parse().unwrap());
        assert_eq!(segment.to, "10.77.0.1:5201".parse().unwrap());
        assert_eq!((segment.number, segment.payload), (0x0102_0304, 3));
        assert!(!segment.is_syn);
        let mut syn = packet();
        syn[33] = SYN;
        assert!(Segment::of(&syn).unwrap().is_syn);
    }

    #[test]
    fn other_packets_and_invalid_headers_are_ignored() {
        let mut udp = packet();
        udp[9] = 17;
        assert_eq!(Segment::of(&udp), None);
        let mut fragment = packet();
        fragment[6] = 0x20;
        assert_eq!(Segment::of(&fragment), None);
        let mut long_header = packet();
        long_header[32] = 0xf0;
        assert_eq!(Segment::of(&long_header), None);
        assert_eq!(Segment::of(&packet()[..39]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(segment) = Segment::of(&bytes) {
                prop_assert!((segment.payload as usize) < bytes.len());
            }
        }
    }
}
