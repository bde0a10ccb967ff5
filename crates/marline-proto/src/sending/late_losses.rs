//! Losses that were found late, behind a long queue.
//!
//! Later data of all paths waits for such a retransmission, and one more loss, or the same queue, makes it wait once more.
//! So two paths carry it.

use std::collections::VecDeque;

use crate::limits::MAX_LATE_LOSSES;
use crate::streams::Segment;
use crate::token::Token;

/// Frames that were found lost late and not sent since.
#[derive(Debug, Default)]
pub(super) struct LateLosses {
    lost: VecDeque<Segment>,
}

impl LateLosses {
    /// Records a lost frame.
    pub(super) fn on_lost(&mut self, token: &Token) {
        let Some(segment) = token.segment() else {
            return;
        };
        if self.lost.len() == MAX_LATE_LOSSES {
            self.lost.pop_front();
        }
        self.lost.push_back(segment);
    }

    /// Whether a segment that is sent retransmits some of what was recorded. It is forgotten once its end is sent.
    pub(super) fn take(&mut self, sent: &Segment) -> bool {
        let (sent_range, mut is_recorded) = (sent.range(), false);
        self.lost.retain(|lost| {
            let range = lost.range();
            let overlaps =
                lost.id == sent.id && range.start < sent_range.end && sent_range.start < range.end;
            is_recorded |= overlaps;
            !overlaps || range.end > sent_range.end
        });
        is_recorded
    }
}

#[cfg(test)]
mod tests {
    use marline_wire::StreamId;

    use super::*;

    fn segment(id: u64, offset: u64, len: usize) -> Segment {
        Segment {
            id: StreamId::from(id),
            offset,
            len,
            fin: false,
        }
    }

    #[test]
    fn a_retransmission_is_recognized_in_parts_and_once() {
        let mut late = LateLosses::default();
        late.on_lost(&Token::Segment(segment(0, 1000, 500)));
        assert!(!late.take(&segment(4, 1000, 500)), "another stream");
        assert!(!late.take(&segment(0, 500, 500)), "the bytes before");
        assert!(late.take(&segment(0, 1000, 300)));
        assert!(late.take(&segment(0, 1300, 400)));
        assert!(!late.take(&segment(0, 1000, 500)), "it was sent");
    }

    #[test]
    fn only_the_latest_losses_are_kept() {
        let mut late = LateLosses::default();
        for number in 0..=MAX_LATE_LOSSES as u64 {
            late.on_lost(&Token::Segment(segment(0, 1000 * number, 1000)));
        }
        assert!(!late.take(&segment(0, 0, 1000)));
        assert!(late.take(&segment(0, 1000, 1000)));
    }
}
