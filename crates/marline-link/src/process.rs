//! Processes of time-varying rates.

use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::random::{exponential, normal, uniform};
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

/// A change of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// Time of the change.
    pub at: Time,
    /// New rate in bits per second.
    pub bits_per_second: u64,
}

/// A rate that follows a list of changes.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Changes in time order.
    changes: Vec<RateChange>,
    /// The rate before the first change, in bits per second.
    initial: u64,
    /// The period after which the list repeats, in nanoseconds.
    period: Option<u64>,
}

impl Steps {
    /// A rate of `initial` bits per second until the first of `changes`. Of several changes at one
    /// time the last takes effect.
    pub fn new(initial: u64, mut changes: Vec<RateChange>) -> Self {
        changes.sort_by_key(|change| change.at);
        Self {
            changes,
            initial,
            period: None,
        }
    }

    /// Repeats the list, from the initial rate, every `period`, which is at least a nanosecond.
    #[must_use]
    pub fn repeating(mut self, period: Duration) -> Self {
        self.period = Some(nanos(period));
        self
    }
}

impl RateProcess for Steps {
    fn at(&mut self, now: Time) -> Segment {
        let (base, end) = match self.period {
            Some(period) => {
                let base = now.as_nanos() / period * period;
                (base, base.saturating_add(period))
            }
            None => (0, u64::MAX),
        };
        let now = Time::from_nanos(now.as_nanos() - base);
        let next = self.changes.partition_point(|change| change.at <= now);
        Segment {
            bits_per_second: match next.checked_sub(1) {
                Some(last) => self.changes[last].bits_per_second,
                None => self.initial,
            },
            until: Time::from_nanos(match self.changes.get(next) {
                Some(change) => base.saturating_add(change.at.as_nanos()).min(end),
                None => end,
            }),
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

/// A continuous-time Markov process: the rate jumps between states with exponential dwell times.
///
/// The next state is any of the others with equal probability; two states make an on-off process.
#[derive(Clone, Debug)]
pub struct Markov {
    /// The states.
    states: Vec<State>,
    /// The current state.
    current: usize,
    /// End of the current state.
    until: Time,
    /// Generator of transitions and dwell times.
    rng: Pcg64Mcg,
}

/// A state of a [`Markov`] process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The rate.
    pub bits_per_second: u64,
    /// Mean dwell time, at least a microsecond.
    pub mean_dwell: Duration,
}

impl Markov {
    /// Starts in one of `states` drawn from the stationary distribution, that is, in proportion to the
    /// mean dwell times. Without states the rate is 0.
    pub fn new(states: Vec<State>, seed: Seed) -> Self {
        let mut rng = seed.of("rate").rng();
        let total: Duration = states.iter().map(|state| state.mean_dwell).sum();
        let mut point = total.mul_f64(uniform(&mut rng));
        let found = states.iter().position(|state| {
            let inside = point < state.mean_dwell;
            point = point.saturating_sub(state.mean_dwell);
            inside
        });
        let mut process = Self {
            states,
            current: found.unwrap_or(0),
            until: Time::ZERO,
            rng,
        };
        process.until = process.dwell(Time::ZERO);
        process
    }

    /// Alternates between `bits_per_second` for `on` and 0 for `off`, both mean durations.
    pub fn on_off(bits_per_second: u64, on: Duration, off: Duration, seed: Seed) -> Self {
        let state = |bits_per_second, mean_dwell| State {
            bits_per_second,
            mean_dwell,
        };
        Self::new(vec![state(bits_per_second, on), state(0, off)], seed)
    }

    /// A random end of the current state, which began at `now`.
    fn dwell(&mut self, now: Time) -> Time {
        let Some(state) = self
            .states
            .get(self.current)
            .filter(|_| self.states.len() > 1)
        else {
            return Time::MAX;
        };
        let mean = state.mean_dwell.max(Duration::from_micros(1));
        now + mean
            .mul_f64(exponential(&mut self.rng))
            .max(Duration::from_nanos(1))
    }
}

impl RateProcess for Markov {
    fn at(&mut self, now: Time) -> Segment {
        while self.until <= now && self.until < Time::MAX {
            let hop = self.rng.random_range(1..self.states.len());
            self.current = (self.current + hop) % self.states.len();
            self.until = self.dwell(self.until);
        }
        Segment {
            bits_per_second: self
                .states
                .get(self.current)
                .map_or(0, |state| state.bits_per_second),
            until: self.until,
        }
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
