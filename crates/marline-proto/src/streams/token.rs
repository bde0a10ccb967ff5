//! Retransmission information of stream frames, stored with the packet that carried them.

use super::send::StreamPart;
use marline_wire::{Dir, StreamId, frame};

/// A range of a stream to be sent, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The stream.
    pub(crate) id: StreamId,
    /// Offset of its first byte.
    pub(crate) offset: u64,
    /// Length in bytes; 0 only if `fin`.
    pub(crate) len: usize,
    /// Whether it includes the FIN.
    pub(crate) fin: bool,
}

impl Segment {
    /// The range of stream offsets.
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.len as u64
    }

    /// The segment as a part of its stream.
    pub(super) fn part(&self) -> StreamPart {
        StreamPart {
            range: self.range(),
            fin: self.fin,
        }
    }

    /// The segment of stream `id` that covers `part`.
    pub(super) fn new(id: StreamId, part: &StreamPart) -> Self {
        Self {
            id,
            offset: part.range.start,
            len: (part.range.end - part.range.start) as usize,
            fin: part.fin,
        }
    }

    /// Length in bytes of its STREAM frame.
    pub(crate) fn frame_size(&self, explicit_length: bool) -> usize {
        frame::Stream::header_size(self.id, self.offset, self.len, explicit_length) + self.len
    }

    /// Splits off the front so that its frame takes at most `room` bytes without explicit length;
    /// `self` is the rest. `None` if all of it fits, or no byte of it.
    pub(crate) fn split_front(&mut self, room: usize) -> Option<Self> {
        let header = frame::Stream::header_size(self.id, self.offset, self.len, false);
        let len = room.checked_sub(header).filter(|&len| len > 0)?;
        if len >= self.len {
            return None;
        }
        let front = Self {
            len,
            fin: false,
            ..*self
        };
        self.offset += len as u64;
        self.len -= len;
        Some(front)
    }
}

/// A sent frame other than STREAM; returned when its packet is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamToken {
    /// RESET_STREAM.
    ResetStream(StreamId),
    /// STOP_SENDING.
    StopSending(StreamId),
    /// MAX_DATA with this limit.
    MaxData(u64),
    /// MAX_STREAM_DATA with this limit.
    MaxStreamData(StreamId, u64),
    /// MAX_STREAMS with this limit.
    MaxStreams(Dir, u64),
    /// DATA_BLOCKED at this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED at this limit.
    StreamDataBlocked(StreamId, u64),
    /// STREAMS_BLOCKED at this limit.
    StreamsBlocked(Dir, u64),
}
