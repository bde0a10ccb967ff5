//! The send queue of a path.

use std::collections::VecDeque;

use crate::streams::Segment;

/// A queued segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) segment: Segment,
    /// Whether another path carries it as well.
    pub(crate) is_copy: bool,
}

/// Segments assigned to a path and not yet in a packet: ranges, not bytes.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    segments: VecDeque<Queued>,
    /// Stream bytes of all segments.
    bytes: u64,
}

impl SendQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Stream bytes in the queue.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        self.put(segment, false);
    }

    /// Adds a segment that another path carries as well.
    pub(crate) fn push_copy(&mut self, segment: Segment) {
        self.put(segment, true);
    }

    fn put(&mut self, segment: Segment, is_copy: bool) {
        self.bytes += segment.len as u64;
        self.segments.push_back(Queued { segment, is_copy });
    }

    /// The front of the next segment whose frame fits `room` bytes, or the whole segment if none fits.
    pub(crate) fn pop(&mut self, room: usize) -> Option<Queued> {
        let next = self.segments.front_mut()?;
        let is_copy = next.is_copy;
        let segment = match next.segment.split_front(room) {
            Some(front) => front,
            None => self.segments.pop_front()?.segment,
        };
        self.bytes -= segment.len as u64;
        Some(Queued { segment, is_copy })
    }

    /// Removes the first segment, unless it is a copy, for another path.
    pub(crate) fn take_first(&mut self) -> Option<Segment> {
        self.segments.front().filter(|first| !first.is_copy)?;
        let first = self.segments.pop_front()?.segment;
        self.bytes -= first.len as u64;
        Some(first)
    }

    /// Removes the last segment, unless it is a copy, for another path.
    pub(crate) fn take_last(&mut self) -> Option<Segment> {
        self.segments.back().filter(|last| !last.is_copy)?;
        let last = self.segments.pop_back()?.segment;
        self.bytes -= last.len as u64;
        Some(last)
    }

    /// Removes and returns all segments.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Segment> {
        self.bytes = 0;
        self.segments.drain(..).map(|queued| queued.segment)
    }
}
