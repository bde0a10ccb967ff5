//! Rows of losses of one length.

use std::num::NonZeroU64;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::bernoulli;
use crate::{Seed, Time};

/// Loses packets in rows of equal length, which begin at random.
///
/// A row ends early if no packet arrives for [`Self::LONGEST_PAUSE`]: what loses several packets in a row is over
/// when a sender comes back after a timeout. Takes one draw per packet.
pub struct Rows {
    /// The probability that a row begins with a packet outside of rows.
    begins: f64,
    length: u64,
    /// Packets of the present row that are still to be lost.
    left: u64,
    latest: Time,
    rng: Pcg64Mcg,
}

impl Rows {
    /// The longest time between two packets of a row.
    pub const LONGEST_PAUSE: Duration = Duration::from_millis(100);

    /// Loses `share` of the packets, from 0 to 1, in rows of `length`, as long as there are no pauses.
    pub fn new(share: f64, length: NonZeroU64, seed: Seed) -> Self {
        // Between two rows (length (1 - share) / share) packets pass on average.
        let passed = length.get() as f64 * (1.0 - share) / share;
        Self {
            begins: 1.0 / (1.0 + passed),
            length: length.get(),
            left: 0,
            latest: Time::ZERO,
            rng: seed.rng(),
        }
    }
}

impl LossModel for Rows {
    fn loses(&mut self, now: Time) -> bool {
        if now.since(self.latest) > Self::LONGEST_PAUSE {
            self.left = 0;
        }
        self.latest = now;
        let begins = bernoulli(&mut self.rng, self.begins);
        if self.left == 0 && begins {
            self.left = self.length;
        }
        let loses = self.left > 0;
        self.left -= u64::from(loses);
        loses
    }
}
