//! Persistent congestion (RFC 9002, section 7.6).

use std::time::Duration;

use crate::time::Instant;

/// The losses of a packet number space since one was acknowledged that was sent after them, whether they are found
/// at one moment or at several: of two probes the second may be acknowledged before the first counts as lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossPeriod {
    /// When the first ack-eliciting one was sent.
    began: Option<Instant>,
}

impl LossPeriod {
    /// A lost packet that was sent at `sent_at` arrived after all.
    pub(super) fn on_spurious_loss(&mut self, sent_at: Instant) {
        if self.began.is_some_and(|began| sent_at >= began) {
            self.began = None;
        }
    }
}

/// Looks for persistent congestion among packets that are declared lost at one moment, in ascending order, and those
/// before.
///
/// It spans from one ack-eliciting packet to another, as long as no packet that was sent between them was
/// acknowledged (section 7.6.2). Other packets between them neither establish nor prevent it: ACK-only ones,
/// probes for larger datagrams, packet numbers that were left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersistentCongestion {
    duration: Duration,
    /// When the first round-trip sample came: packets sent before do not count (section 7.6.2).
    first_sample_at: Option<Instant>,
    period: LossPeriod,
    established: bool,
}

impl PersistentCongestion {
    /// Losses establish it that span more than `duration` ([`super::pto::persistent_congestion`]); they continue
    /// `period`.
    pub(super) fn new(
        duration: Duration,
        first_sample_at: Option<Instant>,
        period: LossPeriod,
    ) -> Self {
        Self {
            duration,
            first_sample_at,
            period,
            established: false,
        }
    }

    /// A packet between those that are lost was acknowledged.
    pub(super) fn on_acked_between(&mut self) {
        self.period = LossPeriod::default();
    }

    /// An ack-eliciting packet that was sent at `sent_at` is lost.
    pub(super) fn on_lost(&mut self, sent_at: Instant) {
        if self.first_sample_at.is_none_or(|first| sent_at <= first) {
            return;
        }
        let began = *self.period.began.get_or_insert(sent_at);
        self.established |= sent_at - began > self.duration;
    }

    pub(super) fn is_established(&self) -> bool {
        self.established
    }

    /// The losses that those to come may continue: none of what has established it.
    pub(super) fn period(&self) -> LossPeriod {
        match self.established {
            true => LossPeriod::default(),
            false => self.period,
        }
    }
}
