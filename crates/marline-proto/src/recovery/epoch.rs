//! Loss epochs: the losses and marks for which the window is reduced once (RFC 9002, section 7.3.2), and whether
//! all of the losses were spurious.

use crate::samples::LossSample;
use crate::spaces::LossSampleId;
use crate::time::Instant;

/// The latest epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEpoch {
    began: Option<Instant>,
    newest_sent_at: Instant,
    /// The first sample of it; that of its next losses.
    first: LossSampleId,
    next: LossSampleId,
    /// Losses of it that did not turn out to be spurious.
    unexplained: u64,
    /// Whether a mark began it, so that its reduction stands whatever becomes of its losses.
    marked: bool,
}

impl LossEpoch {
    /// No epoch. Packets lost in `self` and earlier ones belong to none of those to come.
    pub(super) fn restarted(&self) -> Self {
        Self {
            next: self.next,
            ..Self::default()
        }
    }

    /// The sample that will count the next losses.
    pub(super) fn next_sample(&self) -> LossSampleId {
        self.next
    }

    /// Packets were lost, and marked as counted by [`Self::next_sample`]; returns whether a new epoch begins with
    /// them.
    pub(super) fn on_loss(&mut self, now: Instant, sample: &LossSample) -> bool {
        let is_new = self.began.is_none_or(|began| sample.latest_sent_at > began);
        if is_new {
            self.began = Some(now);
            self.newest_sent_at = sample.latest_sent_at;
            self.first = self.next;
            self.unexplained = 0;
            self.marked = false;
        }
        self.unexplained += sample.packets;
        self.next = self.next.following();
        is_new
    }

    /// The window was reduced because packets were marked: an epoch begins.
    pub(super) fn on_ce_reduction(&mut self, now: Instant) {
        self.began = Some(now);
        self.first = self.next;
        self.unexplained = 0;
        self.marked = true;
    }

    /// A lost packet that this sample counted arrived after all. If that explains the last loss of the epoch,
    /// returns when the newest of its packets was sent.
    pub(super) fn on_spurious_loss(&mut self, counted_by: LossSampleId) -> Option<Instant> {
        let is_of_epoch = self.began.is_some() && counted_by >= self.first;
        if !is_of_epoch || self.marked || self.unexplained == 0 {
            return None;
        }
        self.unexplained -= 1;
        (self.unexplained == 0).then_some(self.newest_sent_at)
    }
}
