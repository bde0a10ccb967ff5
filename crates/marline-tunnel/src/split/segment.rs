//! Segments of TCP in IP packets: their ends, and packets with other ends.

use std::net::{IpAddr, SocketAddr};

use crate::packet::{Header, TCP, checksum, updated};

/// Bytes of a header of TCP without options.
const HEADER: usize = 20;

/// Where the checksum is in it.
const CHECKSUM: usize = 16;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

/// The two ends of a connection, as one direction of it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
}

impl Ends {
    /// Those of the other direction.
    pub(crate) fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) ends: Ends,
    pub(crate) sequence: u32,
    pub(crate) acknowledgment: u32,
    pub(crate) flags: u8,
    /// Where it begins in its packet.
    start: usize,
    /// The numbers that it takes: bytes of its payload, SYN, and FIN.
    length: u32,
}

impl Segment {
    /// Reads the segment of a packet with this header; `None` if the packet has no whole one, or has options or extension
    /// headers.
    pub(crate) fn parse(packet: &[u8], header: &Header) -> Option<Self> {
        let start = if header.source.is_ipv4() { 20 } else { 40 };
        if header.protocol != TCP || header.payload() != Some(start) {
            return None;
        }
        let segment = packet.get(start..)?;
        let fixed: &[u8; HEADER] = segment.first_chunk()?;
        let offset = usize::from(fixed[12] >> 4) * 4;
        if offset < HEADER || offset > segment.len() {
            return None;
        }
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        let flags = fixed[13];
        let numbered = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        Some(Self {
            ends: Ends {
                source: SocketAddr::new(header.source, word(0)),
                destination: SocketAddr::new(header.destination, word(2)),
            },
            sequence: long(4),
            acknowledgment: long(8),
            flags,
            start,
            length: (segment.len() - offset) as u32 + numbered,
        })
    }

    /// Whether it begins a connection.
    pub(crate) fn is_first(&self) -> bool {
        self.flags & (SYN | ACK | RST) == SYN
    }

    /// Gives its `packet` other ends, of the same family (RFC 1624). If `is_partial`, its checksum is that of the pseudo-header
    /// alone, and not complemented.
    pub(crate) fn readdress(&self, packet: &mut [u8], ends: Ends, is_partial: bool) {
        let (from, to) = (octets(ends.source.ip()), octets(ends.destination.ip()));
        let length = from.len();
        // Addresses are the last fields of both headers.
        let addresses = self.start - 2 * length;
        let is_v4 = length == 4;
        for (at, octets) in [(addresses, &from), (addresses + length, &to)] {
            for (offset, word) in octets.chunks_exact(2).enumerate() {
                let word = u16::from_be_bytes([word[0], word[1]]);
                let before = replace(packet, at + 2 * offset, word);
                update(packet, self.start + CHECKSUM, |sum| match is_partial {
                    true => !updated(!sum, before, word),
                    false => updated(sum, before, word),
                });
                if is_v4 {
                    update(packet, 10, |sum| updated(sum, before, word));
                }
            }
        }
        let ports = [ends.source.port(), ends.destination.port()];
        for (offset, port) in ports.into_iter().enumerate() {
            let before = replace(packet, self.start + 2 * offset, port);
            if !is_partial {
                let field = self.start + CHECKSUM;
                update(packet, field, |sum| updated(sum, before, port));
            }
        }
    }

    /// The reset that answers it (RFC 9293, section 3.10.7.1); `None` if it is one.
    pub(crate) fn reset(&self) -> Option<Vec<u8>> {
        if self.flags & RST != 0 {
            return None;
        }
        let ends = self.ends.reversed();
        if self.flags & ACK != 0 {
            return bare(ends, self.acknowledgment, 0, RST);
        }
        let acknowledged = self.sequence.wrapping_add(self.length);
        bare(ends, 0, acknowledged, RST | ACK)
    }
}

/// Replaces a word, and returns that of before.
fn replace(packet: &mut [u8], at: usize, word: u16) -> u16 {
    let before = u16::from_be_bytes([packet[at], packet[at + 1]]);
    packet[at..at + 2].copy_from_slice(&word.to_be_bytes());
    before
}

fn update(packet: &mut [u8], at: usize, updated: impl FnOnce(u16) -> u16) {
    let sum = updated(u16::from_be_bytes([packet[at], packet[at + 1]]));
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A packet with a segment without options and payload; `None` if its ends are of two families.
pub(crate) fn bare(ends: Ends, sequence: u32, acknowledgment: u32, flags: u8) -> Option<Vec<u8>> {
    let (from, to) = (octets(ends.source.ip()), octets(ends.destination.ip()));
    let mut packet = match (ends.source, ends.destination) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => {
            let length = (20 + HEADER) as u8;
            let mut packet = vec![0x45, 0, 0, length, 0, 0, 0x40, 0, 64, TCP, 0, 0];
            let sum = checksum(&[&packet, &from, &to]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet
        }
        (SocketAddr::V6(_), SocketAddr::V6(_)) => {
            vec![0x60, 0, 0, 0, 0, HEADER as u8, TCP, 64]
        }
        _ => return None,
    };
    let mut segment = Vec::with_capacity(HEADER);
    segment.extend(ends.source.port().to_be_bytes());
    segment.extend(ends.destination.port().to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(acknowledgment.to_be_bytes());
    let window = if flags & SYN == 0 { [0; 2] } else { [0xff; 2] };
    segment.extend([((HEADER / 4) << 4) as u8, flags, window[0], window[1]]);
    segment.extend([0; 4]);
    let pseudo = [0, TCP, 0, HEADER as u8];
    let sum = checksum(&[&from, &to, &pseudo, &segment]);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    packet.extend(from);
    packet.extend(to);
    packet.extend(segment);
    Some(packet)
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::packet::{fold, sum};

    pub(in crate::split) fn ends(source: &str, destination: &str) -> Ends {
        Ends {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    fn parse(packet: &[u8]) -> Segment {
        Segment::parse(packet, &Header::parse(packet).unwrap()).unwrap()
    }

    /// Whether the checksums of a packet are right, by computing them anew.
    fn is_intact(packet: &[u8]) -> bool {
        let start = if packet[0] >> 4 == 4 { 20 } else { 40 };
        let width = if start == 20 { 4 } else { 16 };
        let segment = &packet[start..];
        let length = (segment.len() as u16).to_be_bytes();
        let pseudo = [0, TCP, length[0], length[1]];
        let of_tcp = checksum(&[&packet[start - 2 * width..start], &pseudo, segment]);
        of_tcp == 0 && (start == 40 || checksum(&[&packet[..20]]) == 0)
    }

    /// A packet with `payload` bytes of content.
    fn with_payload(ends: Ends, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = bare(ends, 7, 9, flags).unwrap();
        packet.extend(payload);
        let length = packet.len() as u16;
        let start = match ends.source {
            SocketAddr::V4(_) => {
                packet[2..4].copy_from_slice(&length.to_be_bytes());
                packet[10..12].fill(0);
                let sum = checksum(&[&packet[..20]]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
                20
            }
            SocketAddr::V6(_) => {
                packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
                40
            }
        };
        packet[start + 16..start + 18].fill(0);
        let (from, to) = (octets(ends.source.ip()), octets(ends.destination.ip()));
        let bytes = ((packet.len() - start) as u16).to_be_bytes();
        let pseudo = [0, TCP, bytes[0], bytes[1]];
        let sum = checksum(&[&from, &to, &pseudo, &packet[start..]]);
        packet[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn any_ends() -> impl Strategy<Value = Ends> {
        let ip = prop_oneof![
            any::<[u32; 2]>().prop_map(|bits| bits.map(|bits| Ipv4Addr::from(bits).into())),
            any::<[u128; 2]>().prop_map(|bits| bits.map(|bits| IpAddr::V6(Ipv6Addr::from(bits)))),
        ];
        (ip, any::<[u16; 2]>()).prop_map(|(ips, ports)| Ends {
            source: SocketAddr::new(ips[0], ports[0]),
            destination: SocketAddr::new(ips[1], ports[1]),
        })
    }

    proptest! {
        #[test]
        fn a_packet_with_other_ends_has_them_and_right_checksums(
            before in any_ends(),
            after in any_ends(),
            flags: u8,
            payload in proptest::collection::vec(any::<u8>(), 0..99),
        ) {
            prop_assume!(before.source.is_ipv4() == after.source.is_ipv4());
            let mut packet = with_payload(before, flags, &payload);
            prop_assert!(is_intact(&packet));
            let segment = parse(&packet);
            prop_assert_eq!(segment.ends, before);
            let mut partial = packet.clone();
            segment.readdress(&mut packet, after, false);
            prop_assert!(is_intact(&packet));
            // The part of the pseudo-header alone.
            let field = segment.start + CHECKSUM;
            let of_header = |packet: &[u8]| {
                let addresses = if segment.start == 20 { 12..20 } else { 8..40 };
                let length = (packet.len() - segment.start) as u64;
                fold(sum(&packet[addresses]) + u64::from(TCP) + length)
            };
            let pseudo = of_header(&partial);
            partial[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
            segment.readdress(&mut partial, after, true);
            let pseudo = u16::from_be_bytes([partial[field], partial[field + 1]]);
            prop_assert_eq!(pseudo, of_header(&partial));
            partial[field..field + 2].copy_from_slice(&packet[field..field + 2]);
            prop_assert_eq!(&partial, &packet);
            let readdressed = parse(&packet);
            prop_assert_eq!(Segment { ends: before, ..readdressed }, segment);
            prop_assert_eq!(readdressed.ends, after);
            prop_assert!(packet.ends_with(&payload));
        }

        #[test]
        fn any_packet_is_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 20..120), v4: bool) {
            bytes[0] = if v4 { 0x45 } else { 0x60 };
            let length = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            bytes[4..6].copy_from_slice(&length.saturating_sub(40).to_be_bytes());
            bytes[if v4 { 9 } else { 6 }] = TCP;
            if let Ok(header) = Header::parse(&bytes)
                && let Some(segment) = Segment::parse(&bytes, &header)
            {
                segment.readdress(&mut bytes, segment.ends.reversed(), false);
                prop_assert_eq!(parse(&bytes).ends, segment.ends.reversed());
            }
        }
    }

    #[test]
    fn a_reset_acknowledges_what_it_answers() {
        for ends in [
            ends("10.0.0.2:1000", "192.0.2.1:80"),
            ends("[fd00::2]:1000", "[2001:db8::1]:80"),
        ] {
            let first = parse(&with_payload(ends, SYN, b"abc"));
            assert!(first.is_first());
            let reset = first.reset().unwrap();
            assert!(is_intact(&reset));
            let reset = parse(&reset);
            assert_eq!(reset.ends, ends.reversed());
            assert_eq!((reset.flags, reset.acknowledgment), (RST | ACK, 11));
            assert_eq!(reset.reset(), None);
            let later = parse(&with_payload(ends, ACK, b""));
            assert!(!later.is_first());
            let reset = parse(&later.reset().unwrap());
            assert_eq!((reset.flags, reset.sequence), (RST, 9));
        }
    }
}
