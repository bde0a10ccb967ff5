//! Persistent congestion (RFC 9002, section 7.6).

use std::time::Duration;

use crate::spaces::SentPacket;
use crate::time::Instant;

/// Looks for persistent congestion among packets that are declared lost at one moment, in ascending order.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersistentCongestion {
    duration: Duration,
    /// When the first round-trip sample came: packets sent before do not count (section 7.6.2).
    first_sample_at: Option<Instant>,
    run: Option<Run>,
    established: bool,
}

/// Lost packets without a gap between them.
#[derive(Clone, Copy, Debug)]
struct Run {
    last: u64,
    began: Instant,
}

impl PersistentCongestion {
    /// Losses establish it that span more than `duration` ([`super::pto::persistent_congestion`]).
    pub(super) fn new(duration: Duration, first_sample_at: Option<Instant>) -> Self {
        Self {
            duration,
            first_sample_at,
            run: None,
            established: false,
        }
    }

    pub(super) fn on_lost(&mut self, number: u64, packet: &SentPacket) {
        let began = match self.run {
            Some(run) if run.last + 1 == number => run.began,
            _ => packet.sent_at,
        };
        self.run = Some(Run {
            last: number,
            began,
        });
        self.established |= packet.ack_eliciting
            && packet.sent_at - began > self.duration
            && self.first_sample_at.is_some_and(|first| began > first);
    }

    pub(super) fn is_established(&self) -> bool {
        self.established
    }
}
