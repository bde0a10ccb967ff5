//! Independent losses.

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::bernoulli;
use crate::{Seed, Time};

/// Loses each packet independently with the same probability.
pub struct Bernoulli {
    share: f64,
    rng: Pcg64Mcg,
}

impl Bernoulli {
    /// Loses `share` of the packets, from 0 to 1.
    pub fn new(share: f64, seed: Seed) -> Self {
        Self {
            share,
            rng: seed.rng(),
        }
    }
}

impl LossModel for Bernoulli {
    fn loses(&mut self, _now: Time) -> bool {
        bernoulli(&mut self.rng, self.share)
    }
}
