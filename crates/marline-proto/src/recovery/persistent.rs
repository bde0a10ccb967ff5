//! Persistent congestion (RFC 9002, section 7.6).

use std::time::Duration;

use crate::spaces::SentPacket;
use crate::time::Instant;

/// Looks for persistent congestion among packets that are declared lost at one moment, in ascending order.
///
/// It spans from one ack-eliciting packet to another, as long as no packet that was sent between them was
/// acknowledged (section 7.6.2). Other packets between them neither establish nor prevent it: ACK-only ones,
/// probes for larger datagrams, packet numbers that were left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersistentCongestion {
    duration: Duration,
    /// When the first round-trip sample came: packets sent before do not count (section 7.6.2).
    first_sample_at: Option<Instant>,
    /// When the first of them was sent.
    began: Option<Instant>,
    established: bool,
}

impl PersistentCongestion {
    /// Losses establish it that span more than `duration` ([`super::pto::persistent_congestion`]).
    pub(super) fn new(duration: Duration, first_sample_at: Option<Instant>) -> Self {
        Self {
            duration,
            first_sample_at,
            began: None,
            established: false,
        }
    }

    /// A packet between those that are lost was acknowledged.
    pub(super) fn on_acked_between(&mut self) {
        self.began = None;
    }

    /// An ack-eliciting packet is lost.
    pub(super) fn on_lost(&mut self, packet: &SentPacket) {
        if self
            .first_sample_at
            .is_none_or(|first| packet.sent_at <= first)
        {
            return;
        }
        let began = *self.began.get_or_insert(packet.sent_at);
        self.established |= packet.sent_at - began > self.duration;
    }

    pub(super) fn is_established(&self) -> bool {
        self.established
    }
}
