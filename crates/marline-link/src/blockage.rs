//! A rate that falls while something blocks the path.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use crate::process::{RateProcess, Segment, scaled};
use crate::random::{bernoulli, exponential};
use crate::{Seed, Time};

#[cfg(test)]
mod tests;

/// The settings of blockages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockageConfig {
    /// Mean length of clear periods.
    pub clear: Duration,
    /// Mean length of blocked periods.
    pub blocked: Duration,
    /// Share of the rate that is left while blocked.
    pub rate: f64,
}

/// A rate that alternates between clear and blocked periods of exponential length: the two-state Markov model of
/// blockage by people (MacCartney, Rappaport and Rangan, "Rapid Fading Due to Human Blockage in Pedestrian Crowds at
/// 5G Millimeter-Wave Frequencies", GLOBECOM 2017, section III).
///
/// The state at the epoch is drawn from the stationary distribution.
pub struct Blockage {
    config: BlockageConfig,
    inner: Box<dyn RateProcess>,
    is_blocked: bool,
    /// End of the current period.
    until: Time,
    rng: Pcg64Mcg,
}

impl Blockage {
    /// Blocks the rate `inner`. Rates with equal seeds are blocked at the same times.
    pub fn new(config: BlockageConfig, inner: Box<dyn RateProcess>, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let [clear, blocked] = [config.clear, config.blocked].map(|time| time.as_secs_f64());
        let share = blocked / (clear + blocked).max(f64::MIN_POSITIVE);
        let mut blockage = Self {
            config,
            inner,
            is_blocked: bernoulli(&mut rng, share),
            until: Time::ZERO,
            rng,
        };
        blockage.lengthen();
        blockage
    }

    /// Draws the length of the current period, at least a microsecond.
    fn lengthen(&mut self) {
        let mean = match self.is_blocked {
            true => self.config.blocked,
            false => self.config.clear,
        };
        let length = mean.as_nanos() as f64 * exponential(&mut self.rng);
        self.until += Duration::from_nanos(length as u64).max(Duration::from_micros(1));
    }
}

impl RateProcess for Blockage {
    fn at(&mut self, now: Time) -> Segment {
        while self.until <= now {
            self.is_blocked = !self.is_blocked;
            self.lengthen();
        }
        let share = if self.is_blocked {
            self.config.rate
        } else {
            1.0
        };
        scaled(self.inner.at(now), share, self.until)
    }
}
