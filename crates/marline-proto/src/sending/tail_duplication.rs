//! Tail duplication: sends retransmitted data twice if no other data waits.
//!
//! A loss at the end of a transfer delays it by a round trip, the loss of the retransmission by two or by a probe
//! timeout: no later packet would reveal it. Of the designs that send data twice in advance (Flach et al., "Reducing
//! Web Latency: the Virtue of Gentle Aggression", SIGCOMM 2013) this is the cheapest: it copies only after a loss, and
//! only a few frames.

use std::collections::VecDeque;

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

    pub(super) fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// Takes the frames.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Segment> + '_ {
        self.lost.drain(..)
    }
}
