//! Finds frames in a stream that is cut anywhere.

use bytes::{Buf, Bytes, BytesMut};
use marline_wire::Reader;

use super::FrameType;

/// The largest size of two variable-length integers.
const MAX_HEADER: usize = 16;

/// A piece of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A frame begins. The caller chooses what happens to its payload by [`FrameParser::treat`].
    Header {
        /// Its type.
        kind: FrameType,
        /// Bytes of its payload.
        length: u64,
    },
    /// The next bytes of the payload of a frame that is [passed](Treatment::Pass); never empty.
    Part(Bytes),
    /// The whole payload of a frame that is [collected](Treatment::Collect).
    Payload {
        /// Its type.
        kind: FrameType,
        /// Its payload.
        payload: Bytes,
    },
}

/// The treatment of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is returned as it arrives, and never stored.
    Pass,
    /// It is stored until it is complete. The caller has checked the length.
    Collect,
    /// It is dropped.
    Skip,
}

/// Parses the frames of one stream.
#[derive(Debug)]
pub struct FrameParser {
    state: State,
    /// An incomplete header.
    held: [u8; MAX_HEADER],
    held_len: usize,
}

#[derive(Debug)]
enum State {
    Header,
    /// The header was returned, and the caller decides next.
    Announced {
        kind: FrameType,
        length: u64,
    },
    Pass {
        left: u64,
    },
    Skip {
        left: u64,
    },
    Collect {
        kind: FrameType,
        left: u64,
        so_far: BytesMut,
    },
}

impl Default for FrameParser {
    fn default() -> Self {
        Self {
            state: State::Header,
            held: [0; MAX_HEADER],
            held_len: 0,
        }
    }
}

impl FrameParser {
    /// Takes the next piece from the front of `input`; `None` once more bytes are needed, and `input` is empty.
    ///
    /// A header that is not followed by [`treat`](Self::treat) counts as skipped.
    pub fn next(&mut self, input: &mut Bytes) -> Option<Piece> {
        loop {
            match &mut self.state {
                State::Header => {
                    let header = self.read_header(input)?;
                    return Some(header);
                }
                State::Announced { .. } => self.treat(Treatment::Skip),
                State::Pass { left: 0 } | State::Skip { left: 0 } => self.state = State::Header,
                State::Pass { left } => {
                    if input.is_empty() {
                        return None;
                    }
                    let part = input.split_to(available(*left, input));
                    *left -= part.len() as u64;
                    return Some(Piece::Part(part));
                }
                State::Skip { left } => {
                    if input.is_empty() {
                        return None;
                    }
                    let dropped = available(*left, input);
                    input.advance(dropped);
                    *left -= dropped as u64;
                }
                State::Collect { kind, left, so_far } => {
                    let part = input.split_to(available(*left, input));
                    *left -= part.len() as u64;
                    // A payload in one piece is not copied.
                    let payload = if *left == 0 && so_far.is_empty() {
                        part
                    } else {
                        so_far.extend_from_slice(&part);
                        if *left > 0 {
                            return None;
                        }
                        std::mem::take(so_far).freeze()
                    };
                    let kind = *kind;
                    self.state = State::Header;
                    return Some(Piece::Payload { kind, payload });
                }
            }
        }
    }

    /// Sets the treatment of the payload of the frame whose header was returned last.
    pub fn treat(&mut self, treatment: Treatment) {
        if let State::Announced { kind, length } = self.state {
            self.state = match treatment {
                Treatment::Pass => State::Pass { left: length },
                Treatment::Skip => State::Skip { left: length },
                Treatment::Collect => State::Collect {
                    kind,
                    left: length,
                    so_far: BytesMut::new(),
                },
            };
        }
    }

    /// Whether the stream may end here: the last frame is complete.
    pub fn is_between_frames(&self) -> bool {
        match self.state {
            State::Header => self.held_len == 0,
            State::Pass { left } | State::Skip { left } => left == 0,
            State::Announced { length, .. } => length == 0,
            State::Collect { .. } => false,
        }
    }

    fn read_header(&mut self, input: &mut Bytes) -> Option<Piece> {
        // Most headers arrive whole.
        if self.held_len == 0
            && let Some(header) = Header::read(input)
        {
            input.advance(header.size);
            return Some(self.announce(&header));
        }
        while input.has_remaining() {
            self.held[self.held_len] = input.get_u8();
            self.held_len += 1;
            if let Some(header) = Header::read(&self.held[..self.held_len]) {
                self.held_len = 0;
                return Some(self.announce(&header));
            }
        }
        None
    }

    fn announce(&mut self, header: &Header) -> Piece {
        let (kind, length) = (header.kind, header.length);
        self.state = State::Announced { kind, length };
        Piece::Header { kind, length }
    }
}

/// The number of the `left` bytes that are in `input`.
fn available(left: u64, input: &Bytes) -> usize {
    usize::try_from(left).map_or(input.len(), |left| left.min(input.len()))
}

struct Header {
    kind: FrameType,
    length: u64,
    /// Its own bytes.
    size: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let kind = FrameType(reader.varint().ok()?);
        let length = reader.varint().ok()?;
        Some(Self {
            kind,
            length,
            size: bytes.len() - reader.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::encode;
    use super::*;

    /// Passes DATA, collects HEADERS, skips everything else; adjacent parts are joined.
    fn parse(stream: &[u8], cut: usize) -> Vec<Piece> {
        let mut parser = FrameParser::default();
        let mut pieces = Vec::new();
        for chunk in stream.chunks(cut) {
            let mut input = Bytes::copy_from_slice(chunk);
            while let Some(piece) = parser.next(&mut input) {
                if let Piece::Header { kind, .. } = piece {
                    parser.treat(match kind {
                        FrameType::DATA => Treatment::Pass,
                        FrameType::HEADERS => Treatment::Collect,
                        _ => Treatment::Skip,
                    });
                }
                match (&piece, pieces.last_mut()) {
                    (Piece::Part(part), Some(Piece::Part(last))) => {
                        *last = [&last[..], part].concat().into();
                    }
                    _ => pieces.push(piece),
                }
            }
            assert!(input.is_empty());
        }
        assert!(parser.is_between_frames());
        pieces
    }

    fn stream() -> Vec<u8> {
        let mut stream = Vec::new();
        encode(FrameType::HEADERS, b"fields", &mut stream);
        encode(FrameType::DATA, b"", &mut stream);
        encode(FrameType::DATA, &[7; 100], &mut stream);
        encode(FrameType(0xf_0000), &[1; 70], &mut stream);
        encode(FrameType::HEADERS, b"", &mut stream);
        stream
    }

    #[test]
    fn frames_are_the_same_however_the_stream_is_cut() {
        let stream = stream();
        let whole = parse(&stream, stream.len());
        let header = |kind, length| Piece::Header { kind, length };
        let payload = |payload: &'static [u8]| Piece::Payload {
            kind: FrameType::HEADERS,
            payload: Bytes::from_static(payload),
        };
        assert_eq!(
            whole,
            [
                header(FrameType::HEADERS, 6),
                payload(b"fields"),
                header(FrameType::DATA, 0),
                header(FrameType::DATA, 100),
                Piece::Part(Bytes::from_static(&[7; 100])),
                header(FrameType(0xf_0000), 70),
                header(FrameType::HEADERS, 0),
                payload(b""),
            ]
        );
        for cut in 1..stream.len() {
            assert_eq!(parse(&stream, cut), whole, "{cut}");
        }
    }

    #[test]
    fn payloads_are_slices_of_what_arrived() {
        let mut input = Bytes::from(stream());
        let range = input.as_ptr_range();
        let mut parser = FrameParser::default();
        while let Some(piece) = parser.next(&mut input) {
            match piece {
                Piece::Header { kind, .. } => parser.treat(match kind {
                    FrameType::DATA => Treatment::Pass,
                    _ => Treatment::Collect,
                }),
                Piece::Part(bytes) | Piece::Payload { payload: bytes, .. } => {
                    assert!(bytes.is_empty() || range.contains(&bytes.as_ptr()));
                }
            }
        }
    }

    /// RFC 9114, section 7.1: a stream must not end within a frame.
    #[test]
    fn only_the_end_of_a_frame_is_between_frames() {
        let mut stream = Vec::new();
        encode(FrameType::DATA, b"abc", &mut stream);
        for end in 0..=stream.len() {
            let mut parser = FrameParser::default();
            let mut input = Bytes::copy_from_slice(&stream[..end]);
            while parser.next(&mut input).is_some() {
                parser.treat(Treatment::Pass);
            }
            let whole = end == 0 || end == stream.len();
            assert_eq!(parser.is_between_frames(), whole, "{end}");
        }
    }

    #[test]
    fn a_collected_frame_takes_memory_as_it_arrives() {
        let mut parser = FrameParser::default();
        let mut input = Bytes::from_static(&[0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert!(parser.next(&mut input).is_some());
        parser.treat(Treatment::Collect);
        assert_eq!(parser.next(&mut input), None);
        let State::Collect { so_far, .. } = &parser.state else {
            panic!("{parser:?}");
        };
        assert_eq!(so_far.capacity(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_consumed(stream in proptest::collection::vec(any::<u8>(), 0..200), cut in 1usize..50) {
            let mut parser = FrameParser::default();
            for chunk in stream.chunks(cut) {
                let mut input = Bytes::copy_from_slice(chunk);
                while let Some(piece) = parser.next(&mut input) {
                    if let Piece::Header { kind, .. } = piece {
                        parser.treat([Treatment::Pass, Treatment::Collect, Treatment::Skip][kind.0 as usize % 3]);
                    }
                }
                prop_assert!(input.is_empty());
            }
        }
    }
}
