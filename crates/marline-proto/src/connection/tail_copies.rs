//! Sends the repeats of lost data a second time where nothing else waits.
//!
//! Losses at the end of a transfer delay it by a round trip. That of a repeat delays it by two or by a probe timeout: no
//! packet follows that would show it. Of the designs that send data twice in advance (Flach et al., "Reducing Web Latency:
//! the Virtue of Gentle Aggression", SIGCOMM 2013) this is the cheapest: only where a packet was lost, and only a few.

use std::collections::VecDeque;

use super::Connection;
use crate::limits::TAIL_COPIES;
use crate::paths::Slot;
use crate::streams::Segment;
use crate::time::Instant;

/// Repeats of lost data that were sent once.
#[derive(Debug, Default)]
pub(super) struct TailCopies {
    /// The latest ones, in the order in which they left.
    repeats: VecDeque<Segment>,
}

impl TailCopies {
    /// A repeat is in a packet.
    pub(super) fn on_repeated(&mut self, repeat: Segment) {
        if self.repeats.len() == TAIL_COPIES {
            self.repeats.pop_front();
        }
        self.repeats.push_back(repeat);
    }
}

impl Connection {
    /// Queues copies of the latest repeats that are neither acknowledged nor copied, if nothing else waits and the path
    /// may send now; returns that path.
    pub(super) fn copy_repeats(&mut self, now: Instant) -> Option<Slot> {
        let may_copy = !self.tail_copies.repeats.is_empty()
            && self.paths.is_single()
            && self.stream_planner.ready().is_none();
        let at = self.paths.best();
        if !may_copy || !self.paths[at].may_send_full(now) {
            return None;
        }
        while let Some(repeat) = self.tail_copies.repeats.pop_front() {
            self.queue_copies(at, &repeat);
        }
        (!self.paths[at].queue.is_empty()).then_some(at)
    }

    /// Queues what of `segment` is in flight once.
    pub(super) fn queue_copies(&mut self, at: Slot, segment: &Segment) {
        // An acknowledged piece in the middle leaves two.
        while let Some(copy) = self.streams.take_copy(segment) {
            self.paths[at].queue.push_copy(copy);
        }
    }
}
