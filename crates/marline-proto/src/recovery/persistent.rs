//! Persistent congestion (RFC 9002, section 7.6).

use std::time::Duration;

use crate::time::Instant;

/// Consecutive losses of a packet number space, with no packet sent between them acknowledged, whether they are
/// detected together or separately: of two probes the second may be acknowledged before the first is declared lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossPeriod {
    /// Send time of the first ack-eliciting one.
    began: Option<Instant>,
}

impl LossPeriod {
    /// Handles a spurious loss of a packet sent at `sent_at`.
    pub(super) fn on_spurious_loss(&mut self, sent_at: Instant) {
        if self.began.is_some_and(|began| sent_at >= began) {
            self.began = None;
        }
    }
}

/// Detects persistent congestion among packets declared lost together, in ascending order, and those before.
///
/// It spans from one ack-eliciting packet to another, as long as no packet sent between them was
/// acknowledged (section 7.6.2). Other packets between them do not matter: ACK-only packets, PMTU probes,
/// skipped packet numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersistentCongestion {
    duration: Duration,
    /// Time of the first RTT sample: packets sent before do not count (section 7.6.2).
    first_sample_at: Option<Instant>,
    period: LossPeriod,
    established: bool,
}

impl PersistentCongestion {
    /// Losses that span more than `duration` ([`super::pto::persistent_congestion`]) establish it; they continue
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

    /// Records that a packet between the lost ones was acknowledged.
    pub(super) fn on_acked_between(&mut self) {
        self.period = LossPeriod::default();
    }

    /// Records the loss of an ack-eliciting packet that was sent at `sent_at`.
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

    /// The loss period that later losses may continue; without those that established persistent congestion.
    pub(super) fn period(&self) -> LossPeriod {
        match self.established {
            true => LossPeriod::default(),
            false => self.period,
        }
    }
}
