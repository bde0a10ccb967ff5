//! Loss bursts of constant length.

use std::num::NonZeroU64;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::bernoulli;
use crate::{Seed, Time};

/// Loses packets in bursts of constant length, which begin at random.
///
/// A burst ends early if no packet arrives for [`Self::LONGEST_PAUSE`]: the cause of a burst is assumed to be
/// over when a sender resumes after a timeout. Takes one draw per packet.
pub struct Rows {
    /// Probability that a burst begins with a packet outside of bursts.
    begins: f64,
    length: u64,
    /// Packets of the present burst still to be lost.
    left: u64,
    latest: Time,
    rng: Pcg64Mcg,
}

impl Rows {
    /// Maximum time between two packets of a burst.
    pub const LONGEST_PAUSE: Duration = Duration::from_millis(100);

    /// Loses `share` of the packets, from 0 to 1, in bursts of `length`, as long as there are no pauses.
    pub fn new(share: f64, length: NonZeroU64, seed: Seed) -> Self {
        // Between two bursts, length (1 - share) / share packets pass on average.
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
