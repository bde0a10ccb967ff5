//! MAX_STREAMS and STREAMS_BLOCKED (RFC 9000, sections 19.11 and 19.14).
//!
//! ```text
//! MAX_STREAMS Frame {            STREAMS_BLOCKED Frame {
//!   Type (i) = 0x12..0x13,         Type (i) = 0x16..0x17,
//!   Maximum Streams (i),           Maximum Streams (i),
//! }                              }
//! ```

use super::FrameErrorKind;
use crate::{Dir, Reader, varint};

/// The largest number of streams of one direction: stream IDs have 62 bits, two of which encode the
/// initiator and the direction.
pub const MAX_STREAMS: u64 = 1 << 60;

/// The limit of streams of one direction that the peer may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStreams {
    /// The direction of the streams.
    pub dir: Dir,
    /// Streams since the start of the connection; at most [`MAX_STREAMS`].
    pub maximum: u64,
}

/// The sender wants to open a stream but has reached the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsBlocked {
    /// The direction of the streams.
    pub dir: Dir,
    /// The limit that was reached, in streams; at most [`MAX_STREAMS`].
    pub limit: u64,
}

fn dir(frame_type: u64) -> Dir {
    Dir::ALL[(frame_type & 1) as usize]
}

fn count(reader: &mut Reader<'_>) -> Result<u64, FrameErrorKind> {
    match reader.varint()? {
        count @ 0..=MAX_STREAMS => Ok(count),
        _ => Err(FrameErrorKind::Invalid("more than 2^60 streams")),
    }
}

impl MaxStreams {
    /// The frame type for bidirectional streams.
    pub const TYPE: u64 = 0x12;
    /// The frame type for unidirectional streams.
    pub const TYPE_UNI: u64 = 0x13;

    pub(super) fn decode(frame_type: u64, reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            dir: dir(frame_type),
            maximum: count(reader)?,
        })
    }

    /// The frame type, which depends on the direction.
    pub const fn frame_type(&self) -> u64 {
        Self::TYPE | self.dir as u64
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(self.frame_type(), buf);
        varint::encode(self.maximum, buf);
    }

    /// Length of the frame in bytes.
    pub const fn size(&self) -> usize {
        1 + varint::size(self.maximum)
    }
}

impl StreamsBlocked {
    /// The frame type for bidirectional streams.
    pub const TYPE: u64 = 0x16;
    /// The frame type for unidirectional streams.
    pub const TYPE_UNI: u64 = 0x17;

    pub(super) fn decode(frame_type: u64, reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            dir: dir(frame_type),
            limit: count(reader)?,
        })
    }

    /// The frame type, which depends on the direction.
    pub const fn frame_type(&self) -> u64 {
        Self::TYPE | self.dir as u64
    }

    /// Appends the frame.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        varint::encode(self.frame_type(), buf);
        varint::encode(self.limit, buf);
    }

    /// Length of the frame in bytes.
    pub const fn size(&self) -> usize {
        1 + varint::size(self.limit)
    }
}
