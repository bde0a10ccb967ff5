//! Frames about streams that are due, other than STREAM itself.

use super::Stream;
use marline_wire::StreamId;
use std::collections::VecDeque;

/// Frames that a stream can owe, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Owed {
    ResetStream = 1,
    StopSending = 2,
    MaxStreamData = 4,
    StreamDataBlocked = 8,
}

/// What one stream owes.
#[derive(Debug, Default)]
pub(super) struct StreamDebt {
    bits: u8,
    queued: bool,
}

impl StreamDebt {
    /// Whether `frame` is due.
    pub(super) const fn has(&self, frame: Owed) -> bool {
        self.bits & frame as u8 != 0
    }
}

/// All that is due.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    /// Streams that owe something, or did.
    streams: VecDeque<StreamId>,
    /// How many bits are set in all streams.
    owed: usize,
    pub(super) max_data: bool,
    pub(super) max_streams: [bool; 2],
    pub(super) data_blocked: bool,
    pub(super) streams_blocked: [bool; 2],
}

impl ControlQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.owed == 0
            && !self.max_data
            && !self.data_blocked
            && self.max_streams == [false; 2]
            && self.streams_blocked == [false; 2]
    }

    /// Makes `frame` due.
    pub(super) fn owe(&mut self, id: StreamId, stream: &mut Stream, frame: Owed) {
        if !stream.debt.has(frame) {
            stream.debt.bits |= frame as u8;
            self.owed += 1;
        }
        if !stream.debt.queued {
            stream.debt.queued = true;
            self.streams.push_back(id);
        }
    }

    /// `frame` is written, or no longer of use.
    pub(super) fn settle(&mut self, stream: &mut Stream, frame: Owed) {
        if stream.debt.has(frame) {
            stream.debt.bits &= !(frame as u8);
            self.owed -= 1;
        }
    }

    /// The stream that has owed longest; it may be gone.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.streams.front().copied()
    }

    /// The front stream, if it still exists, owes nothing anymore.
    pub(super) fn pop_front(&mut self, stream: Option<&mut Box<Stream>>) {
        self.streams.pop_front();
        if let Some(stream) = stream {
            stream.debt.queued = false;
        }
    }

    /// The stream is dropped with all it owed.
    pub(super) fn forget(&mut self, stream: &mut Stream) {
        self.owed -= stream.debt.bits.count_ones() as usize;
        stream.debt.bits = 0;
    }
}
