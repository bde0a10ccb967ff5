//! Versions of QUIC by name, and those whose handshakes are not read: drafts, and Google's predecessors.

use marline_wire::Version;
use marline_wire::packet::bits::{FIXED, LONG_FORM};

use super::Labels;
use super::alpn::printable;
use crate::limits::MAX_NAME;

/// A version of QUIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuicVersion(Box<str>);

/// The bits of the first byte of a public header of gQUIC (draft-tsvwg-quic-protocol-02, section 6.1): it has a version, and an ID
/// of eight bytes.
const GOOGLE_VERSION: u8 = 0x01;
const GOOGLE_ID: u8 = 0x08;

impl QuicVersion {
    pub(super) fn of(version: Version) -> Self {
        Self(match version {
            Version::V1 => "1".into(),
            Version::V2 => "2".into(),
        })
    }

    /// Its name: that of its specification, or four characters.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// The version that a datagram states, if it is a known one whose handshakes are not read.
    pub(crate) fn of_unreadable(datagram: &[u8]) -> Option<Self> {
        let first = *datagram.first()?;
        if first & LONG_FORM != 0 {
            let version = Self::named(*datagram.get(1..)?.first_chunk()?)?;
            // What begins like a draft's packet may be a query of DNS, but for the bit that all drafts set.
            let may_be = first & FIXED != 0 || !version.0.starts_with("draft");
            return may_be.then_some(version);
        }
        if first & GOOGLE_VERSION == 0 || first & GOOGLE_ID == 0 {
            return None;
        }
        Self::named(*datagram.get(9..)?.first_chunk()?).filter(|version| version.0.starts_with('Q'))
    }

    fn named(version: [u8; 4]) -> Option<Self> {
        let name = match version {
            // draft-ietf-quic-transport-01 to -34.
            [0xff, 0, 0, draft @ 1..=34] => format!("draft-{draft}"),
            [kind @ (b'Q' | b'T'), b'0', tens, ones]
                if tens.is_ascii_digit() && ones.is_ascii_digit() =>
            {
                let [kind, tens, ones] = [kind, tens, ones].map(char::from);
                format!("{kind}0{tens}{ones}")
            }
            // mvfst.
            [0xfa, 0xce, 0xb0, number] => format!("mvfst-{number:02x}"),
            _ => return None,
        };
        Some(Self(name.into()))
    }
}

/// The name in the first message of a client of gQUIC, which is in the clear up to Q046: tags with the ends of their values, and
/// the values.
fn client_hello_name(datagram: &[u8]) -> Option<&[u8]> {
    /// Clients send about 20.
    const MAX_TAGS: usize = 128;
    const HELLO: &[u8] = b"CHLO";
    let at = datagram
        .windows(HELLO.len())
        .position(|part| part == HELLO)?;
    let message = datagram.get(at + HELLO.len()..)?;
    let count = usize::from(u16::from_le_bytes(*message.first_chunk()?));
    let (tags, values) = message
        .get(4..)?
        .split_at_checked(count.min(MAX_TAGS) * 8)?;
    let mut start = 0;
    for tag in tags.as_chunks::<8>().0 {
        let [name @ .., a, b, c, d] = *tag;
        let end = u32::from_le_bytes([a, b, c, d]) as usize;
        if name == *b"SNI\0" {
            return values.get(start..end);
        }
        start = end;
    }
    None
}

impl Labels {
    /// A datagram begins a connection whose handshake is not read.
    pub(crate) fn on_unreadable_quic(&mut self, version: &QuicVersion, datagram: &[u8]) {
        self.quic_version = Some(version.clone());
        let name = client_hello_name(datagram).filter(|name| (1..=MAX_NAME).contains(&name.len()));
        self.sni = name.map(|name| printable(name).to_ascii_lowercase().into());
    }
}
