//! Pending control frames of streams: all stream-related frames except STREAM.

use super::Stream;
use marline_wire::StreamId;
use std::collections::VecDeque;

/// Control frames of one stream, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ControlFrame {
    ResetStream = 1,
    StopSending = 2,
    MaxStreamData = 4,
    StreamDataBlocked = 8,
}

/// The pending control frames of one stream.
#[derive(Debug, Default)]
pub(super) struct DueFrames {
    bits: u8,
    queued: bool,
}

impl DueFrames {
    /// Whether `frame` is due.
    pub(super) const fn has(&self, frame: ControlFrame) -> bool {
        self.bits & frame as u8 != 0
    }
}

/// The pending control frames of all streams.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    /// Streams that have, or had, frames due.
    streams: VecDeque<StreamId>,
    /// Number of bits set in all streams.
    stream_frames: usize,
    pub(super) max_data: bool,
    pub(super) max_streams: [bool; 2],
    pub(super) data_blocked: bool,
    pub(super) streams_blocked: [bool; 2],
}

impl ControlQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.stream_frames == 0
            && !self.max_data
            && !self.data_blocked
            && self.max_streams == [false; 2]
            && self.streams_blocked == [false; 2]
    }

    /// Makes `frame` due.
    pub(super) fn make_due(&mut self, id: StreamId, stream: &mut Stream, frame: ControlFrame) {
        if !stream.due.has(frame) {
            stream.due.bits |= frame as u8;
            self.stream_frames += 1;
        }
        if !stream.due.queued {
            stream.due.queued = true;
            self.streams.push_back(id);
        }
    }

    /// Clears `frame`, which is written or no longer needed.
    pub(super) fn clear(&mut self, stream: &mut Stream, frame: ControlFrame) {
        if stream.due.has(frame) {
            stream.due.bits &= !(frame as u8);
            self.stream_frames -= 1;
        }
    }

    /// The stream that has waited longest; it may no longer exist.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.streams.front().copied()
    }

    /// Removes the front stream, all of whose frames are written; `stream` is that stream, if it still exists.
    pub(super) fn pop_front(&mut self, stream: Option<&mut Box<Stream>>) {
        self.streams.pop_front();
        if let Some(stream) = stream {
            stream.due.queued = false;
        }
    }

    /// Drops the frames of a dropped stream.
    pub(super) fn forget(&mut self, stream: &mut Stream) {
        self.stream_frames -= stream.due.bits.count_ones() as usize;
        stream.due.bits = 0;
    }
}
