//! Processes of time-varying rates.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use crate::random::normal;
use crate::{Seed, Time};

/// A piecewise constant rate.
///
/// The rate depends on time alone, not on how often it is queried: links with equal seeds see equal
/// rates, regardless of their traffic. Processes start at the epoch and advance step by step, so a
/// first query long after the epoch takes proportionally long.
pub trait RateProcess: Send {
    /// The rate at `now`. Calls must not go back in time.
    fn at(&mut self, now: Time) -> Segment;
}

/// A period of constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The rate, in bits per second.
    pub bits_per_second: u64,
    /// End of the period; [`Time::MAX`] for never. Later than the time of the query.
    pub until: Time,
}

/// A constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Rate in bits per second.
    pub bits_per_second: u64,
}

impl RateProcess for Steady {
    fn at(&mut self, _now: Time) -> Segment {
        Segment {
            bits_per_second: self.bits_per_second,
            until: Time::MAX,
        }
    }
}

/// An Ornstein-Uhlenbeck process, sampled at a fixed period and clipped at 0.
#[derive(Clone, Debug)]
pub struct OrnsteinUhlenbeck {
    /// Mean rate in bits per second.
    mean: f64,
    /// Deviation of the current sample from the mean.
    deviation: f64,
    /// The factor by which a deviation decays in a sampling period.
    decay: f64,
    /// Standard deviation of the noise that a sampling period adds.
    noise_std: f64,
    /// The sampling period, in nanoseconds.
    period: u64,
    /// Index of the current sample.
    index: u64,
    /// Generator of the noise.
    rng: Pcg64Mcg,
}

impl OrnsteinUhlenbeck {
    /// A process with mean `mean` and standard deviation `sigma` in bits per second, correlation time
    /// `tau`, and a constant rate within each sampling `period`.
    pub fn new(mean: f64, sigma: f64, tau: Duration, period: Duration, seed: Seed) -> Self {
        let mut rng = seed.of("rate").rng();
        let decay = match tau.as_secs_f64() {
            0.0 => 0.0,
            tau => libm::exp(-period.as_secs_f64() / tau),
        };
        Self {
            mean,
            deviation: sigma * normal(&mut rng),
            decay,
            noise_std: sigma * (1.0 - decay * decay).sqrt(),
            period: nanos(period),
            index: 0,
            rng,
        }
    }
}

impl RateProcess for OrnsteinUhlenbeck {
    fn at(&mut self, now: Time) -> Segment {
        let index = now.as_nanos() / self.period;
        while self.index < index {
            self.deviation = self.decay * self.deviation + self.noise_std * normal(&mut self.rng);
            self.index += 1;
        }
        Segment {
            bits_per_second: bits_per_second(self.mean + self.deviation),
            until: Time::from_nanos((index + 1).saturating_mul(self.period)),
        }
    }
}

/// `segment` with a share of its rate, which may change at `until`.
pub(crate) fn scaled(segment: Segment, share: f64, until: Time) -> Segment {
    Segment {
        bits_per_second: bits_per_second(segment.bits_per_second as f64 * share),
        until: segment.until.min(until),
    }
}

/// The nearest valid rate.
fn bits_per_second(rate: f64) -> u64 {
    libm::round(rate.max(0.0)) as u64
}

/// A duration in nanoseconds, at least 1.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests;
