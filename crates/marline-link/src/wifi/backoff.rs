//! Enhanced distributed channel access, EDCA (IEEE 802.11-2020, 10.23).

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::phy::{SIFS, SLOT};
use crate::Seed;

/// The EDCA parameters of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edca {
    /// AIFSN: idle slots after a SIFS before the backoff counts down.
    pub aifsn: u32,
    /// CWmin: the initial contention window; a backoff is 0 to this many slots.
    pub cw_min: u32,
    /// CWmax: the limit up to which the window doubles with each failure.
    pub cw_max: u32,
}

impl Edca {
    /// Access category best effort: AIFSN 3, contention windows of 15 to 1023 slots.
    pub const BEST_EFFORT: Self = Self {
        aifsn: 3,
        cw_min: 15,
        cw_max: 1023,
    };
}

/// The backoff state of one station.
#[derive(Debug)]
pub(super) struct Backoff {
    edca: Edca,
    /// Number of retries after which the window is reset.
    retry_limit: u32,
    /// Number of consecutive failures.
    failures: u32,
    /// Current contention window, in slots.
    window: u32,
    /// Remaining backoff slots.
    slots: u32,
    rng: Pcg64Mcg,
}

impl Backoff {
    /// No backoff pending.
    pub(super) fn new(edca: Edca, retry_limit: u32, seed: Seed) -> Self {
        Self {
            edca,
            retry_limit,
            failures: 0,
            window: edca.cw_min,
            slots: 0,
            rng: seed.rng(),
        }
    }

    /// The earliest transmission time if the medium is idle from `idle_from` on, in nanoseconds.
    pub(super) fn access_time(&self, idle_from: u64) -> u64 {
        idle_from + SIFS + SLOT * u64::from(self.edca.aifsn + self.slots)
    }

    /// Freezes the backoff after `slots` idle slots since a SIFS, because another station transmits.
    pub(super) fn freeze(&mut self, slots: u64) {
        let counted = slots.saturating_sub(u64::from(self.edca.aifsn));
        self.slots = u64::from(self.slots)
            .saturating_sub(counted)
            .try_into()
            .unwrap_or(self.slots);
    }

    /// Starts a backoff for a packet to send, because the medium is busy.
    pub(super) fn defer(&mut self) {
        if self.slots == 0 {
            self.draw();
        }
    }

    /// Handles an acknowledged transmission. A post-transmission backoff follows, even with an empty queue.
    pub(super) fn succeed(&mut self) {
        self.failures = 0;
        self.window = self.edca.cw_min;
        self.draw();
    }

    /// Handles an unacknowledged transmission.
    pub(super) fn fail(&mut self) {
        self.failures += 1;
        if self.failures > self.retry_limit {
            self.failures = 0;
            self.window = self.edca.cw_min;
        } else {
            self.window = (2 * self.window + 1).min(self.edca.cw_max);
        }
        self.draw();
    }

    fn draw(&mut self) {
        self.slots = self.rng.random_range(0..=self.window);
    }
}

#[cfg(test)]
mod tests;
