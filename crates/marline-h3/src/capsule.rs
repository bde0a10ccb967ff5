//! The capsule protocol (RFC 9297, section 3): a sequence of typed values as the content of an upgraded or extended
//! CONNECT request and of its response.

use bytes::{Buf, Bytes, BytesMut};
use marline_wire::{Reader, varint};

/// The largest size of a type and a length, both variable-length integers.
const MAX_HEADER: usize = 16;

/// The type of a capsule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CapsuleType(u64);

impl CapsuleType {
    /// An HTTP datagram on the stream of its request (RFC 9297, section 3.5).
    pub const DATAGRAM: Self = Self(0x00);

    /// The type with this value on the wire, at most 2^62 - 1.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Its value on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// A capsule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capsule {
    /// Its type.
    pub kind: CapsuleType,
    /// Its value.
    pub value: Bytes,
}

impl Capsule {
    /// Appends its encoding.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(self.kind.0, buf);
        varint::encode(self.value.len() as u64, buf);
        buf.extend_from_slice(&self.value);
    }
}

/// A type of capsule that a receiver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCapsule {
    /// The type.
    pub kind: CapsuleType,
    /// The most bytes of its value that are accepted.
    pub max_length: usize,
}

/// Why content is not a sequence of acceptable capsules. The receiver abandons the stream: the message is malformed
/// (RFC 9297, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapsuleError {
    /// A capsule of a known type is longer than is accepted.
    #[error("a capsule of type {kind:#x} has {length} bytes; {max} are accepted", kind = kind.0)]
    TooLong {
        /// The type.
        kind: CapsuleType,
        /// The length that it announces, in bytes.
        length: u64,
        /// The most bytes that are accepted.
        max: usize,
    },
    /// The content ends within a capsule.
    #[error("the stream ends within a capsule")]
    Truncated,
}

/// Finds capsules in content that is cut anywhere. Those of unknown types are skipped as they arrive.
///
/// It stores what was [pushed](Self::push) and not yet returned: take all capsules before the next push, and that is at
/// most one value of a known type, and a header.
#[derive(Debug)]
pub struct CapsuleParser {
    known: &'static [KnownCapsule],
    held: BytesMut,
    /// Bytes to skip of a capsule of an unknown type.
    skipped: u64,
    /// The capsule whose value is incomplete.
    begun: Option<Begun>,
}

/// A capsule of a known type whose header was read.
#[derive(Clone, Copy, Debug)]
struct Begun {
    kind: CapsuleType,
    length: usize,
}

impl CapsuleParser {
    /// A parser of content that has not begun.
    pub fn new(known: &'static [KnownCapsule]) -> Self {
        Self {
            known,
            held: BytesMut::new(),
            skipped: 0,
            begun: None,
        }
    }

    /// The next bytes of the content have arrived.
    pub fn push(&mut self, mut bytes: Bytes) {
        bytes.advance(self.skip(bytes.len()));
        self.held.extend_from_slice(&bytes);
    }

    /// The next complete capsule of a known type.
    ///
    /// # Errors
    /// [`CapsuleError::TooLong`].
    pub fn next_capsule(&mut self) -> Result<Option<Capsule>, CapsuleError> {
        loop {
            if let Some(Begun { kind, length }) = self.begun {
                if self.held.len() < length {
                    return Ok(None);
                }
                self.begun = None;
                let value = self.held.split_to(length).freeze();
                return Ok(Some(Capsule { kind, value }));
            }
            if self.skipped > 0 {
                let now = self.skip(self.held.len());
                self.held.advance(now);
                if self.skipped > 0 {
                    return Ok(None);
                }
            }
            if !self.begin()? {
                return Ok(None);
            }
        }
    }

    /// The content has ended.
    ///
    /// # Errors
    /// [`CapsuleError::Truncated`].
    pub fn finish(&self) -> Result<(), CapsuleError> {
        match self.held.is_empty() && self.skipped == 0 && self.begun.is_none() {
            true => Ok(()),
            false => Err(CapsuleError::Truncated),
        }
    }

    /// Reads the header of a capsule; returns whether it was complete.
    fn begin(&mut self) -> Result<bool, CapsuleError> {
        let header = &self.held[..self.held.len().min(MAX_HEADER)];
        let mut reader = Reader::new(header);
        let (Ok(kind), Ok(length)) = (reader.varint(), reader.varint()) else {
            return Ok(false);
        };
        let read = header.len() - reader.len();
        self.held.advance(read);
        let kind = CapsuleType(kind);
        let Some(known) = self.known.iter().find(|known| known.kind == kind) else {
            self.skipped = length;
            return Ok(true);
        };
        match usize::try_from(length) {
            Ok(length) if length <= known.max_length => {
                self.begun = Some(Begun { kind, length });
                Ok(true)
            }
            _ => Err(CapsuleError::TooLong {
                kind,
                length,
                max: known.max_length,
            }),
        }
    }

    /// Skips up to `available` bytes; returns how many.
    fn skip(&mut self, available: usize) -> usize {
        let skipped = self.skipped.min(available as u64);
        self.skipped -= skipped;
        skipped as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPE: CapsuleType = CapsuleType::new(0x1234);

    const KNOWN: &[KnownCapsule] = &[
        KnownCapsule {
            kind: CapsuleType::DATAGRAM,
            max_length: 1500,
        },
        KnownCapsule {
            kind: TYPE,
            max_length: 64,
        },
    ];

    fn encoded(capsules: &[Capsule]) -> Vec<u8> {
        let mut bytes = Vec::new();
        capsules
            .iter()
            .for_each(|capsule| capsule.encode(&mut bytes));
        bytes
    }

    /// All capsules of content that arrives in chunks of `chunk` bytes.
    fn parsed(content: &[u8], chunk: usize) -> Result<Vec<Capsule>, CapsuleError> {
        let mut parser = CapsuleParser::new(KNOWN);
        let mut capsules = Vec::new();
        for bytes in content.chunks(chunk) {
            parser.push(Bytes::copy_from_slice(bytes));
            while let Some(capsule) = parser.next_capsule()? {
                capsules.push(capsule);
            }
            assert!(parser.held.len() <= 1500 + MAX_HEADER);
        }
        parser.finish()?;
        Ok(capsules)
    }

    fn any_capsule() -> impl Strategy<Value = Capsule> {
        let kinds = prop_oneof![Just(0), Just(TYPE.0), Just(0x29), 0..varint::MAX];
        (kinds, proptest::collection::vec(any::<u8>(), 0..64)).prop_map(|(kind, value)| Capsule {
            kind: CapsuleType(kind),
            value: value.into(),
        })
    }

    proptest! {
        #[test]
        fn known_capsules_are_found_however_the_content_is_cut(
            capsules in proptest::collection::vec(any_capsule(), 0..8),
            chunk in 1_usize..100,
        ) {
            let found = parsed(&encoded(&capsules), chunk).unwrap();
            let is_known = |capsule: &Capsule| KNOWN.iter().any(|known| known.kind == capsule.kind);
            let expected: Vec<_> = capsules.into_iter().filter(is_known).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn arbitrary_content_is_parsed_or_refused(
            content in proptest::collection::vec(any::<u8>(), 0..400),
            chunk in 1_usize..100,
        ) {
            let _ = parsed(&content, chunk);
        }
    }

    /// RFC 9297, section 3.3.
    #[test]
    fn content_that_ends_within_a_capsule_is_refused() {
        let capsules = [TYPE, CapsuleType(0x29)].map(|kind| Capsule {
            kind,
            value: Bytes::from_static(b"value"),
        });
        for capsule in capsules {
            let whole = encoded(&[capsule]);
            for length in 1..whole.len() {
                let found = parsed(&whole[..length], 3);
                assert_eq!(found, Err(CapsuleError::Truncated), "{length}");
            }
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_refused_before_it_arrives() {
        let mut parser = CapsuleParser::new(KNOWN);
        let mut header = Vec::new();
        varint::encode(TYPE.0, &mut header);
        varint::encode(65, &mut header);
        parser.push(header.into());
        let expected = CapsuleError::TooLong {
            kind: TYPE,
            length: 65,
            max: 64,
        };
        assert_eq!(parser.next_capsule(), Err(expected));
    }

    #[test]
    fn an_unknown_capsule_of_any_length_takes_no_memory() {
        let mut parser = CapsuleParser::new(KNOWN);
        let mut header = Vec::new();
        varint::encode(0x29, &mut header);
        varint::encode(varint::MAX, &mut header);
        parser.push(header.into());
        for _ in 0..100 {
            assert_eq!(parser.next_capsule(), Ok(None));
            parser.push(Bytes::from_static(&[0; 10_000]));
            assert!(parser.held.is_empty());
        }
    }
}
