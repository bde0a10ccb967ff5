//! Round trips, counted by delivered bytes.

use crate::samples::RateSample;

/// Counts rounds: one ends when a packet is acknowledged that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    count: u64,
    /// The round ends with a packet sent when at least this much had been delivered.
    end: u64,
}

impl Rounds {
    /// Rounds so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Processes a sample; returns whether it begins a round.
    pub(super) fn update(&mut self, rate: &RateSample) -> bool {
        let begins = rate.prior_delivered >= self.end;
        if begins {
            self.end = rate.delivered_total;
            self.count += 1;
        }
        begins
    }

    /// The present round ends only with a packet sent from now on.
    pub(super) fn restart(&mut self, delivered_total: u64) {
        self.end = delivered_total;
    }
}
