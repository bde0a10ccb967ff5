//! Who may speak when: EDCA (IEEE 802.11-2020, 10.23).

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::phy::{SIFS, SLOT};
use crate::Seed;

/// How eagerly a station contends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edca {
    /// Slots that the medium must have been idle for, after a SIFS, before backoff counts.
    pub aifsn: u32,
    /// The first contention window: a backoff is of 0 to this many slots.
    pub cw_min: u32,
    /// The largest contention window; it doubles up to this with each failure.
    pub cw_max: u32,
}

impl Edca {
    /// Best effort, the class of unmarked traffic: AIFSN 3, windows of 15 to 1023 slots.
    pub const BEST_EFFORT: Self = Self {
        aifsn: 3,
        cw_min: 15,
        cw_max: 1023,
    };
}

/// The backoff of one contender.
#[derive(Debug)]
pub(super) struct Backoff {
    edca: Edca,
    /// Tries after the first before the window starts anew.
    retry_limit: u32,
    /// Failures in a row.
    failures: u32,
    /// The present contention window.
    window: u32,
    /// Slots left to wait.
    slots: u32,
    rng: Pcg64Mcg,
}

impl Backoff {
    /// Has nothing to wait for.
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

    /// The first moment at which it may speak if the medium is idle from `idle_from` on, in nanoseconds.
    pub(super) fn turn(&self, idle_from: u64) -> u64 {
        idle_from + SIFS + SLOT * u64::from(self.edca.aifsn + self.slots)
    }

    /// The medium was idle for `slots` after a SIFS, and somebody else speaks now.
    pub(super) fn freeze(&mut self, slots: u64) {
        let counted = slots.saturating_sub(u64::from(self.edca.aifsn));
        self.slots = u64::from(self.slots)
            .saturating_sub(counted)
            .try_into()
            .unwrap_or(self.slots);
    }

    /// It wants to speak and finds the medium busy.
    pub(super) fn defer(&mut self) {
        if self.slots == 0 {
            self.draw();
        }
    }

    /// It was answered. It backs off before it speaks again, even if it has nothing to say yet.
    pub(super) fn succeed(&mut self) {
        self.failures = 0;
        self.window = self.edca.cw_min;
        self.draw();
    }

    /// It was not answered.
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
