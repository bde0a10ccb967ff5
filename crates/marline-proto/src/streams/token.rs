//! What a sent packet remembers of the streams' frames.

use marline_wire::{Dir, StreamId};

/// A piece of a stream to be sent: an order, not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The stream.
    pub(crate) id: StreamId,
    /// Where the piece begins, in bytes.
    pub(crate) offset: u64,
    /// Its length, in bytes; 0 only if `fin`.
    pub(crate) len: usize,
    /// Whether the stream ends with it.
    pub(crate) fin: bool,
}

impl Segment {
    /// The bytes of the stream that it covers.
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.len as u64
    }
}

/// A frame that was sent, other than STREAM; hand it back when its packet is acknowledged or lost.
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
