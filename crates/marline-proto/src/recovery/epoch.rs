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
    /// First sample of the epoch, or of the next one.
    first: LossSampleId,
    next: LossSampleId,
    /// Number of losses of the epoch that are not known to be spurious.
    unexplained: u64,
    /// Whether a CE mark started the epoch, so that its reduction stays even if all its losses are spurious.
    marked: bool,
}

impl LossEpoch {
    /// The state without an epoch. Packets lost in `self` and earlier epochs do not belong to later ones.
    pub(super) fn restarted(&self) -> Self {
        Self {
            next: self.next,
            ..Self::default()
        }
    }

    /// The sample that counts the next losses.
    pub(super) fn next_sample(&self) -> LossSampleId {
        self.next
    }

    /// Handles lost packets, which are marked as counted by [`Self::next_sample`]; returns whether they start a
    /// new epoch.
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

    /// Starts an epoch after a reduction because of CE marks.
    pub(super) fn on_ce_reduction(&mut self, now: Instant) {
        self.began = Some(now);
        self.first = self.next;
        self.unexplained = 0;
        self.marked = true;
    }

    /// Handles a spurious loss that this sample counted. If it was the last remaining loss of the epoch,
    /// returns the send time of the epoch's newest packet.
    pub(super) fn on_spurious_loss(&mut self, counted_by: LossSampleId) -> Option<Instant> {
        let is_of_epoch = self.began.is_some() && counted_by >= self.first;
        if !is_of_epoch || self.marked || self.unexplained == 0 {
            return None;
        }
        self.unexplained -= 1;
        (self.unexplained == 0).then_some(self.newest_sent_at)
    }
}
