//! ICMP messages of a tunnel: the packet is larger than it carries (RFC 1191; RFC 4443, section 3.2), or its destination is not
//! reached (RFC 792; RFC 4443, section 3.1).

use std::net::IpAddr;

use crate::packet::{Header, MIN_MTU, checksum, is_routable};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// Bytes of a packet that a message of ICMP for IPv4 repeats: its header with options, and eight bytes (RFC 792); Linux reads
/// more, which costs nothing (RFC 1812, section 4.3.2.3).
const REPEATED_V4: usize = 548;

/// The message for the sender of `packet` that at most `mtu` bytes pass; `None` if there is nobody to be told, or it is about a
/// message of ICMP that must not be answered.
pub fn packet_too_big(packet: &[u8], header: &Header, mtu: u16, from: IpAddr) -> Option<Vec<u8>> {
    let error = match from {
        IpAddr::V4(_) => Error {
            kind: 3,
            code: 4,
            value: mtu.into(),
        },
        IpAddr::V6(_) => Error {
            kind: 2,
            code: 0,
            value: mtu.into(),
        },
    };
    error.about(packet, header, from)
}

/// Why the destination of a packet is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// There is no route to it, or it does not answer.
    Host,
    /// It must not be reached.
    Prohibited,
}

impl Unreachable {
    /// The message for the sender of `packet`, as from its destination; `None` as for [`packet_too_big`].
    pub(crate) fn message(self, packet: &[u8], header: &Header) -> Option<Vec<u8>> {
        let (kind, code) = match (self, header.destination) {
            (Self::Host, IpAddr::V4(_)) => (3, 1),
            (Self::Prohibited, IpAddr::V4(_)) => (3, 13),
            (Self::Host, IpAddr::V6(_)) => (1, 3),
            (Self::Prohibited, IpAddr::V6(_)) => (1, 1),
        };
        let error = Error {
            kind,
            code,
            value: 0,
        };
        error.about(packet, header, header.destination)
    }
}

/// The first fields of a message.
struct Error {
    kind: u8,
    code: u8,
    /// The four bytes after the checksum.
    value: u32,
}

impl Error {
    fn about(&self, packet: &[u8], header: &Header, from: IpAddr) -> Option<Vec<u8>> {
        if !is_routable(header.source) {
            return None;
        }
        let mut message = vec![self.kind, self.code, 0, 0];
        message.extend(self.value.to_be_bytes());
        match (header.source, from) {
            (IpAddr::V4(to), IpAddr::V4(from)) => {
                // No errors about errors (RFC 1122, section 3.2.2): only echo messages are answered.
                let start = usize::from(packet[0] & 0x0f) * 4;
                if header.protocol == ICMP && !matches!(packet.get(start), Some(0 | 8)) {
                    return None;
                }
                message.extend(&packet[..packet.len().min(REPEATED_V4)]);
                let sum = checksum(&[&message]);
                message[2..4].copy_from_slice(&sum.to_be_bytes());
                let length = (20 + message.len()) as u16;
                let mut whole = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, ICMP, 0, 0];
                whole[2..4].copy_from_slice(&length.to_be_bytes());
                whole.extend(from.octets());
                whole.extend(to.octets());
                let sum = checksum(&[&whole]);
                whole[10..12].copy_from_slice(&sum.to_be_bytes());
                whole.extend(message);
                Some(whole)
            }
            (IpAddr::V6(to), IpAddr::V6(from)) => {
                // Types below 128 are errors (RFC 4443, section 2.4).
                if header.protocol == ICMP_V6 && packet.get(40).is_none_or(|kind| *kind < 128) {
                    return None;
                }
                // The message itself is no larger than every link carries.
                let room = usize::from(MIN_MTU) - 48;
                message.extend(&packet[..packet.len().min(room)]);
                let length = message.len() as u16;
                let mut whole = vec![0x60, 0, 0, 0, 0, 0, ICMP_V6, 64];
                whole[4..6].copy_from_slice(&length.to_be_bytes());
                whole.extend(from.octets());
                whole.extend(to.octets());
                let pseudo = [0, 0, whole[4], whole[5], 0, 0, 0, ICMP_V6];
                let sum = checksum(&[&whole[8..40], &pseudo, &message]);
                message[2..4].copy_from_slice(&sum.to_be_bytes());
                whole.extend(message);
                Some(whole)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::udp;

    #[test]
    fn the_sender_is_told_the_size_that_passes() {
        for (source, destination, router) in [
            ("10.0.0.2", "192.0.2.1", "10.0.0.1"),
            ("fd00::2", "2001:db8::1", "fd00::1"),
        ] {
            let packet = udp(source, destination, 1400);
            let header = Header::parse(&packet).unwrap();
            let router: IpAddr = router.parse().unwrap();
            let message = packet_too_big(&packet, &header, 1300, router).unwrap();
            let outer = Header::parse(&message).unwrap();
            assert_eq!((outer.source, outer.destination), (router, header.source));
            assert!(message.len() <= usize::from(MIN_MTU));
            let body = match router.is_ipv4() {
                true => {
                    assert_eq!(checksum(&[&message[..20]]), 0);
                    assert_eq!(checksum(&[&message[20..]]), 0);
                    assert_eq!(message[20..22], [3, 4]);
                    &message[26..]
                }
                false => {
                    let pseudo = [0, 0, message[4], message[5], 0, 0, 0, ICMP_V6];
                    assert_eq!(checksum(&[&message[8..40], &pseudo, &message[40..]]), 0);
                    assert_eq!(message[40], 2);
                    &message[46..]
                }
            };
            assert_eq!(body[..2], 1300_u16.to_be_bytes());
            assert!(packet.starts_with(&body[2..]));
        }
    }

    #[test]
    fn the_sender_is_told_that_a_destination_is_not_reached() {
        for (source, destination) in [("10.0.0.2", "192.0.2.1"), ("fd00::2", "2001:db8::1")] {
            let packet = udp(source, destination, 9);
            let header = Header::parse(&packet).unwrap();
            let types = [Unreachable::Host, Unreachable::Prohibited].map(|why| {
                let message = why.message(&packet, &header).unwrap();
                let outer = Header::parse(&message).unwrap();
                assert_eq!(outer.source, header.destination);
                assert_eq!(outer.destination, header.source);
                assert!(message.ends_with(&packet));
                let start = message.len() - packet.len() - 8;
                [message[start], message[start + 1]]
            });
            let expected = match header.source {
                IpAddr::V4(_) => [[3, 1], [3, 13]],
                IpAddr::V6(_) => [[1, 3], [1, 1]],
            };
            assert_eq!(types, expected);
        }
    }

    #[test]
    fn errors_are_not_answered_by_errors() {
        for (source, destination, router) in [
            ("10.0.0.2", "192.0.2.1", "10.0.0.1"),
            ("fd00::2", "2001:db8::1", "fd00::1"),
        ] {
            let packet = udp(source, destination, 1400);
            let header = Header::parse(&packet).unwrap();
            let router = router.parse().unwrap();
            let error = packet_too_big(&packet, &header, 1300, router).unwrap();
            let header = Header::parse(&error).unwrap();
            let answer = packet_too_big(&error, &header, 1300, destination.parse().unwrap());
            assert_eq!(answer, None);
        }
    }
}
