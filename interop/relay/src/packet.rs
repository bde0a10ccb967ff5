//! The unprotected fields of a QUIC datagram (RFC 8999; RFC 9000, section 17; RFC 9369, section 3.2).

/// The number of version 2.
const VERSION_2: [u8; 4] = [0x6b, 0x33, 0x43, 0xcf];

/// The unprotected fields of a datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PublicFields<'a> {
    pub(crate) initial: bool,
    /// An Initial packet with a token.
    pub(crate) token: bool,
    pub(crate) zero_rtt: bool,
    pub(crate) handshake: bool,
    pub(crate) retry: bool,
    pub(crate) version_negotiation: bool,
    /// The version of the first long header, if it has a packet of one.
    pub(crate) version: Option<[u8; 4]>,
    /// The datagram starts with a short header.
    pub(crate) short: bool,
    /// Source connection ID of the first long header.
    pub(crate) source_id: Option<&'a [u8]>,
}

impl PublicFields<'_> {
    /// Whether the datagram begins with a packet of version 2.
    pub(crate) fn is_v2(&self) -> bool {
        self.version == Some(VERSION_2)
    }
}

/// Parses the long headers of `datagram`, up to the first malformed one.
pub(crate) fn inspect(datagram: &[u8]) -> PublicFields<'_> {
    let mut seen = PublicFields {
        short: datagram.first().is_some_and(|first| first & 0x80 == 0),
        ..PublicFields::default()
    };
    let mut rest = datagram;
    while let Some(after) = long_header(rest, &mut seen) {
        rest = after;
    }
    seen
}

/// Reads one long header packet and returns what follows it in the datagram.
fn long_header<'a>(packet: &'a [u8], seen: &mut PublicFields<'a>) -> Option<&'a [u8]> {
    let (&first, rest) = packet.split_first()?;
    if first & 0x80 == 0 {
        return None;
    }
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (_destination, rest) = counted(rest)?;
    let (source, rest) = counted(rest)?;
    seen.source_id.get_or_insert(source);
    if *version == [0; 4] {
        seen.version_negotiation = true;
        return None;
    }
    seen.version.get_or_insert(*version);
    // The types of version 2 are ahead by one.
    let ahead = u8::from(*version == VERSION_2);
    let rest = match (first >> 4).wrapping_sub(ahead) & 0b11 {
        0 => {
            seen.initial = true;
            let (length, rest) = varint(rest)?;
            seen.token |= length > 0;
            rest.get(usize::try_from(length).ok()?..)?
        }
        1 => {
            seen.zero_rtt = true;
            rest
        }
        2 => {
            seen.handshake = true;
            rest
        }
        _ => {
            seen.retry = true;
            return None;
        }
    };
    let (length, rest) = varint(rest)?;
    rest.get(usize::try_from(length).ok()?..)
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(length.into())
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let &first = bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let (&first, more) = number.split_first()?;
    let start = u64::from(first & 0x3f);
    let value = more
        .iter()
        .fold(start, |value, &byte| (value << 8) | u64::from(byte));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coalesced_packets_are_all_inspected() {
        let mut datagram = vec![0xc0, 0, 0, 0, 1, 2, 8, 8, 1, 9, 1, 0xaa, 2, 1, 2];
        datagram.extend([0xe0, 0, 0, 0, 1, 2, 8, 8, 1, 9, 0x40, 1, 7]);
        datagram.extend([0x40, 1, 2, 3]);
        let seen = inspect(&datagram);
        assert!(seen.initial && seen.token && seen.handshake);
        assert!(!seen.zero_rtt && !seen.short && !seen.retry);
        assert_eq!(seen.source_id, Some(&[9][..]));
    }

    #[test]
    fn types_of_version_2_differ() {
        let header = |first| [first, 0x6b, 0x33, 0x43, 0xcf, 0, 0, 0];
        assert!(inspect(&header(0xd0)).initial);
        assert!(inspect(&header(0xe0)).zero_rtt);
        assert!(inspect(&header(0xf0)).handshake);
        assert!(inspect(&header(0xc0)).retry);
        assert!(inspect(&header(0xd0)).is_v2());
    }

    #[test]
    fn truncated_headers_never_panic() {
        let datagram = [
            0xd0, 0, 0, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        ];
        for length in 0..=datagram.len() {
            inspect(&datagram[..length]);
        }
        assert!(inspect(&datagram).zero_rtt);
        assert!(inspect(&[0x80, 0, 0, 0, 0, 0, 0]).version_negotiation);
        assert!(inspect(&[0xf0, 0, 0, 0, 1, 0, 0]).retry);
        assert!(inspect(&[0x40]).short);
    }
}
