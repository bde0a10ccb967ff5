//! Correlated random events with netem's algorithm.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::Seed;

/// Events whose probability netem writes as `P CORRELATION`.
///
/// A low-pass filtered uniform value is compared with the probability. The filter narrows the distribution of
/// the value, so that with a correlation the event rate is lower than the probability, down to none. Takes one
/// draw per event.
pub(crate) struct CorrelatedEvents {
    /// Probability in units of 2^-32, as in netem.
    probability: u64,
    correlation: u64,
    last: u64,
    rng: Pcg64Mcg,
}

impl CorrelatedEvents {
    /// Events of this probability and correlation, both from 0 to 1.
    pub(crate) fn new(probability: f64, correlation: f64, seed: Seed) -> Self {
        let scaled = |share: f64| (share * f64::from(u32::MAX)) as u64;
        let mut rng = seed.rng();
        Self {
            probability: scaled(probability),
            correlation: scaled(correlation),
            last: rng.next_u64() >> 32,
            rng,
        }
    }

    /// Draws whether the next event happens.
    pub(crate) fn happens(&mut self) -> bool {
        const ONE: u64 = 1 << 32;
        let fresh = self.rng.next_u64() >> 32;
        self.last = (fresh * (ONE - self.correlation) + self.last * self.correlation) >> 32;
        self.last < self.probability
    }
}
