//! Loss bursts measured in time.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::random::{bernoulli, exponential, uniform};
use crate::{Seed, Time};

/// The Gilbert-Elliott model in continuous time: good and bad periods of exponential duration, as on a
/// fading radio channel. The higher the packet rate, the more packets a bad period affects.
///
/// The periods depend only on the seed, not on the packets.
pub struct Timed {
    good: Duration,
    bad: Duration,
    bad_loss: f64,
    is_bad: bool,
    until: Time,
    durations_rng: Pcg64Mcg,
    loss_rng: Pcg64Mcg,
}

impl Timed {
    /// Minimum mean duration of a period.
    pub const SHORTEST: Duration = Duration::from_micros(1);

    /// Good and bad periods that last `good` and `bad` on average, at least [`Self::SHORTEST`]. In a
    /// bad period each packet is lost with probability `bad_loss`, in a good one never.
    pub fn new(good: Duration, bad: Duration, bad_loss: f64, seed: Seed) -> Self {
        let (good, bad) = (good.max(Self::SHORTEST), bad.max(Self::SHORTEST));
        let mut durations_rng = seed.of("stays").rng();
        let bad_share = bad.as_nanos() as f64 / (good + bad).as_nanos() as f64;
        let mut model = Self {
            good,
            bad,
            bad_loss,
            is_bad: bernoulli(&mut durations_rng, bad_share),
            until: Time::ZERO,
            durations_rng,
            loss_rng: seed.of("fates").rng(),
        };
        model.until = Time::ZERO + model.duration();
        model
    }

    /// Loses all packets in bad periods of mean duration `bad`, which take up `share` of the time, in
    /// [0, 1).
    pub fn of_bursts(share: f64, bad: Duration, seed: Seed) -> Self {
        let good = bad.as_nanos() as f64 * (1.0 - share) / share;
        Self::new(Duration::from_nanos(good as u64), bad, 1.0, seed)
    }

    /// A random duration for the current period.
    fn duration(&mut self) -> Duration {
        let mean = if self.is_bad { self.bad } else { self.good };
        Duration::from_nanos((mean.as_nanos() as f64 * exponential(&mut self.durations_rng)) as u64)
    }
}

impl LossModel for Timed {
    fn loses(&mut self, now: Time) -> bool {
        while self.until <= now {
            self.is_bad = !self.is_bad;
            // A zero duration would make no progress.
            let duration = self.duration().max(Duration::from_nanos(1));
            self.until += duration;
        }
        uniform(&mut self.loss_rng) < self.bad_loss && self.is_bad
    }
}
