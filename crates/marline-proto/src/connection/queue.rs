//! What a path is going to send.

use std::collections::VecDeque;

use crate::streams::Segment;

/// Segments assigned to a path and not yet in a packet: orders, not bytes.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    segments: VecDeque<Segment>,
    /// Stream bytes that they stand for.
    bytes: u64,
}

impl SendQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Stream bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, segment: Segment) {
        self.bytes += segment.len as u64;
        self.segments.push_back(segment);
    }

    /// The front of the next segment whose frame fits `room` bytes, as much as fits. If nothing does,
    /// the segment.
    pub(super) fn pop(&mut self, room: usize) -> Option<Segment> {
        let next = self.segments.front_mut()?;
        let segment = match next.split_front(room) {
            Some(front) => front,
            None => self.segments.pop_front()?,
        };
        self.bytes -= segment.len as u64;
        Some(segment)
    }

    /// Takes all back.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Segment> {
        self.bytes = 0;
        self.segments.drain(..)
    }
}
