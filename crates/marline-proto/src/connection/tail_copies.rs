//! Sends what repeats lost data a second time where nothing else waits.
//!
//! A loss at the end of a transfer delays it by a round trip, that of the repeat by two or by a probe timeout: no packet
//! follows that would show it. Of the designs that send data twice in advance (Flach et al., "Reducing Web Latency: the
//! Virtue of Gentle Aggression", SIGCOMM 2013) this is the cheapest: only where packets were lost, and only a few.

use std::collections::VecDeque;

use super::Connection;
use crate::limits::TAIL_COPIES;
use crate::streams::Segment;
use crate::token::Token;

/// What was lost lately, and not copied since.
#[derive(Debug, Default)]
pub(super) struct TailCopies {
    lost: VecDeque<Segment>,
}

impl TailCopies {
    /// A frame was declared lost.
    pub(super) fn on_lost(&mut self, token: &Token) {
        let Some(segment) = token.segment() else {
            return;
        };
        if self.lost.len() == TAIL_COPIES {
            self.lost.pop_front();
        }
        self.lost.push_back(segment);
    }
}

impl Connection {
    /// If all that was due is sent: makes the latest lost data, which was repeated, due once more, unless it is
    /// acknowledged. Returns whether there is any.
    pub(super) fn copy_repeats(&mut self) -> bool {
        let lost = &mut self.tail_copies.lost;
        if lost.is_empty() || !self.paths.is_single() || self.stream_planner.ready().is_some() {
            return false;
        }
        for segment in lost.drain(..) {
            self.streams.on_segment_lost(&segment);
        }
        self.refresh_ready();
        self.stream_planner.ready().is_some() || self.streams.has_ends()
    }
}
