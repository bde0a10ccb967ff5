//! Loss epochs: the losses for which the window is reduced once (RFC 9002, section 7.3.2), and whether all
//! of them were spurious.

use crate::samples::LossSample;
use crate::time::Instant;

/// The latest epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEpoch {
    began: Option<Instant>,
    newest_sent_at: Instant,
    /// Losses of it that did not turn out to be spurious.
    unexplained: u64,
}

impl LossEpoch {
    /// Packets were lost; returns whether a new epoch begins with them.
    pub(super) fn on_loss(&mut self, now: Instant, sample: &LossSample) -> bool {
        let is_new = self.began.is_none_or(|began| sample.latest_sent_at > began);
        if is_new {
            *self = Self {
                began: Some(now),
                newest_sent_at: sample.latest_sent_at,
                unexplained: sample.packets,
            };
        } else {
            self.unexplained += sample.packets;
        }
        is_new
    }

    /// A lost packet that was sent at `sent_at` arrived after all. If that explains the last loss of the
    /// epoch, returns when the newest of its packets was sent.
    pub(super) fn on_spurious_loss(&mut self, sent_at: Instant) -> Option<Instant> {
        let is_of_epoch = self.began.is_some_and(|began| sent_at <= began);
        if !is_of_epoch || self.unexplained == 0 {
            return None;
        }
        self.unexplained -= 1;
        (self.unexplained == 0).then_some(self.newest_sent_at)
    }
}
