//! Losses that come in bursts of time.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::{exponential, happens, unit};
use crate::{Seed, Time};

/// The model of Gilbert and Elliott on a clock: good and bad times of exponential length, as on a
/// radio channel that fades. The faster the packets, the more of them a bad time takes.
///
/// When the times are good or bad depends on the seed alone, not on the packets.
pub struct Timed {
    good: Duration,
    bad: Duration,
    bad_loss: f64,
    is_bad: bool,
    until: Time,
    stays: Pcg64Mcg,
    fates: Pcg64Mcg,
}

impl Timed {
    /// The shortest mean of a stay; a model that changes faster than any packet is none.
    pub const SHORTEST: Duration = Duration::from_micros(1);

    /// Good and bad times that last `good` and `bad` on average, at least [`Self::SHORTEST`]; in a bad
    /// time each packet is lost with probability `bad_loss`, in a good one never.
    pub fn new(good: Duration, bad: Duration, bad_loss: f64, seed: Seed) -> Self {
        let (good, bad) = (good.max(Self::SHORTEST), bad.max(Self::SHORTEST));
        let mut stays = seed.of("stays").rng();
        let bad_share = bad.as_nanos() as f64 / (good + bad).as_nanos() as f64;
        let mut model = Self {
            good,
            bad,
            bad_loss,
            is_bad: happens(&mut stays, bad_share),
            until: Time::ZERO,
            stays,
            fates: seed.of("fates").rng(),
        };
        model.until = Time::ZERO + model.stay();
        model
    }

    /// Loses everything in bad times of `bad` on average, which take up `share` of the time, from 0 up
    /// to, not including, 1.
    pub fn of_bursts(share: f64, bad: Duration, seed: Seed) -> Self {
        let good = bad.as_nanos() as f64 * (1.0 - share) / share;
        Self::new(Duration::from_nanos(good as u64), bad, 1.0, seed)
    }

    /// How long the present state lasts.
    fn stay(&mut self) -> Duration {
        let mean = if self.is_bad { self.bad } else { self.good };
        Duration::from_nanos((mean.as_nanos() as f64 * exponential(&mut self.stays)) as u64)
    }
}

impl LossModel for Timed {
    fn loses(&mut self, now: Time) -> bool {
        while self.until <= now {
            self.is_bad = !self.is_bad;
            // A stay of no time at all would not move on.
            let stay = self.stay().max(Duration::from_nanos(1));
            self.until += stay;
        }
        unit(&mut self.fates) < self.bad_loss && self.is_bad
    }
}
