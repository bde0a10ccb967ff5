//! Tail duplication: sends retransmitted data twice if no other data waits.
//!
//! A loss at the end of a transfer delays it by a round trip, the loss of the retransmission by two or by a probe
//! timeout: no later packet would reveal it. Of the designs that send data twice in advance (Flach et al., "Reducing
//! Web Latency: the Virtue of Gentle Aggression", SIGCOMM 2013) this is the cheapest: it copies only after a loss, and
//! only a few frames.

use std::collections::VecDeque;

use super::Connection;
use crate::limits::MAX_DUPLICATES;
use crate::streams::Segment;
use crate::token::Token;

/// Recently lost frames that were not duplicated since.
#[derive(Debug, Default)]
pub(super) struct TailDuplication {
    lost: VecDeque<Segment>,
}

impl TailDuplication {
    /// Records a lost frame.
    pub(super) fn on_lost(&mut self, token: &Token) {
        let Some(segment) = token.segment() else {
            return;
        };
        if self.lost.len() == MAX_DUPLICATES {
            self.lost.pop_front();
        }
        self.lost.push_back(segment);
    }
}

impl Connection {
    /// If all due data is sent: makes the latest retransmitted data due once more, unless it is acknowledged.
    /// Returns whether there is any.
    pub(super) fn copy_repeats(&mut self) -> bool {
        let lost = &mut self.tail_duplication.lost;
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
