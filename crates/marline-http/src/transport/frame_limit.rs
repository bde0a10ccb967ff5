//! A limit on frames that are buffered.
//!
//! h3 buffers every frame except DATA until it is complete, whatever its announced length, and extends the
//! flow control window for each byte. Frames are therefore parsed here, before h3.

use crate::limits;

/// The type of DATA frames (RFC 9114 section 7.2.1), the only ones that are read in pieces.
const DATA: u64 = 0x00;

/// The type of control streams (RFC 9114 section 6.2.1).
const CONTROL: u64 = 0x00;

/// The largest size of two variable-length integers.
const MAX_FRAME_HEADER: usize = 16;

/// Parses one stream of a peer.
#[derive(Debug)]
pub(super) struct FrameLimit {
    next: Next,
    /// Incomplete integers.
    held: [u8; MAX_FRAME_HEADER],
    held_len: usize,
}

/// The element to which the next byte belongs.
#[derive(Debug)]
enum Next {
    StreamType,
    FrameHeader,
    Payload(u64),
    /// No frames, or a stream that h3 ignores.
    Anything,
}

/// A frame announces more than [`limits::MAX_FRAME_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes exceeds the limit")]
pub(super) struct TooLong(u64);

impl FrameLimit {
    /// The state before the first byte of a request stream, or of a unidirectional one.
    pub(super) fn new(unidirectional: bool) -> Self {
        Self {
            next: match unidirectional {
                true => Next::StreamType,
                false => Next::FrameHeader,
            },
            held: [0; MAX_FRAME_HEADER],
            held_len: 0,
        }
    }

    /// Parses the next bytes of the stream.
    ///
    /// # Errors
    /// A frame that would be buffered is too long.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while let [first, rest @ ..] = bytes {
            match &mut self.next {
                Next::Anything => break,
                Next::Payload(left) => {
                    let here = usize::try_from(*left).map_or(bytes.len(), |l| l.min(bytes.len()));
                    *left -= here as u64;
                    bytes = &bytes[here..];
                    if *left == 0 {
                        self.next = Next::FrameHeader;
                    }
                    continue;
                }
                Next::StreamType | Next::FrameHeader => {}
            }
            self.held[self.held_len] = *first;
            self.held_len += 1;
            bytes = rest;
            if let Some(next) = self.after_held()? {
                self.next = next;
                self.held_len = 0;
            }
        }
        Ok(())
    }

    /// The element after the held bytes, if their integers are complete.
    fn after_held(&self) -> Result<Option<Next>, TooLong> {
        let held = &self.held[..self.held_len];
        let Some(kind) = Integer::read(held) else {
            return Ok(None);
        };
        if matches!(self.next, Next::StreamType) {
            return Ok(Some(match kind.value {
                CONTROL => Next::FrameHeader,
                _ => Next::Anything,
            }));
        }
        let length = Integer::read(kind.rest).map(|length| length.value);
        match length {
            None => Ok(None),
            Some(0) => Ok(Some(Next::FrameHeader)),
            Some(length) if kind.value != DATA && length > limits::MAX_FRAME_BYTES => {
                Err(TooLong(length))
            }
            Some(length) => Ok(Some(Next::Payload(length))),
        }
    }
}

/// A variable-length integer (RFC 9000 section 16).
struct Integer<'a> {
    value: u64,
    /// The bytes after it.
    rest: &'a [u8],
}

impl<'a> Integer<'a> {
    /// The integer at the start of `bytes`, if it is complete.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let first = *bytes.first()?;
        let (encoded, rest) = bytes.split_at_checked(1 << (first >> 6))?;
        let low = encoded[1..].iter();
        let value = low.fold(u64::from(first & 0x3f), |value, byte| {
            value << 8 | u64::from(*byte)
        });
        Some(Self { value, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &[u8] = &[0x04, 0x00];
    const REQUEST: &[u8] = &[0x01, 0x02, 9, 9, 0x00, 0x41, 0x00];
    /// HEADERS of 2^30 - 1 bytes, whose type and length take eight and four bytes.
    const LONG: &[u8] = &[0xc0, 0, 0, 0, 0, 0, 0, 1, 0xbf, 0xff, 0xff, 0xff];

    fn pass(limit: &mut FrameLimit, bytes: &[u8], piece: usize) -> Result<(), TooLong> {
        bytes.chunks(piece).try_for_each(|piece| limit.pass(piece))
    }

    #[test]
    fn frames_are_parsed_in_pieces_of_any_size() {
        for piece in 1..20 {
            let mut limit = FrameLimit::new(false);
            pass(&mut limit, REQUEST, piece).unwrap();
            pass(&mut limit, &[0xff; 256], piece).unwrap();
            pass(&mut limit, REQUEST, piece).unwrap();
            pass(&mut limit, &[0xff; 256], piece).unwrap();
            assert_eq!(pass(&mut limit, LONG, piece), Err(TooLong((1 << 30) - 1)));
        }
    }

    #[test]
    fn data_frames_have_no_limit() {
        let mut limit = FrameLimit::new(false);
        let longest = [&[0x00][..], &[0xff; 8]].concat();
        limit.pass(&longest).unwrap();
        limit.pass(LONG).unwrap();
    }

    #[test]
    fn a_frame_of_the_limit_passes() {
        let unknown = |length: u64| [&[0x21], &(3 << 62 | length).to_be_bytes()[..]].concat();
        let mut limit = FrameLimit::new(false);
        limit.pass(&unknown(limits::MAX_FRAME_BYTES)).unwrap();
        let mut limit = FrameLimit::new(false);
        let longer = limits::MAX_FRAME_BYTES + 1;
        assert_eq!(limit.pass(&unknown(longer)), Err(TooLong(longer)));
    }

    #[test]
    fn only_control_streams_among_unidirectional_ones_are_parsed() {
        let mut control = FrameLimit::new(true);
        control.pass(&[&[0x00], SETTINGS].concat()).unwrap();
        assert!(control.pass(LONG).is_err());
        let mut qpack = FrameLimit::new(true);
        qpack.pass(&[0x02]).unwrap();
        qpack.pass(LONG).unwrap();
    }
}
