//! Rates that change with time.

use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::random::{exponential, normal, unit};
use crate::{Seed, Time};

/// A rate that is constant for a while, then another.
///
/// What it does depends on time alone, never on how often it is asked: links with equal seeds see equal
/// rates, whatever traffic they carry. It begins at the epoch, and walks there step by step: a caller
/// whose clock began long before pays for that at the first packet.
pub trait RateProcess: Send {
    /// What holds at `now`, which never goes back.
    fn at(&mut self, now: Time) -> Segment;
}

/// A stretch of time of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The rate, in bits per second.
    pub bits_per_second: u64,
    /// When it ends; [`Time::MAX`] if it does not. Later than the moment that was asked about.
    pub until: Time,
}

/// One rate for ever.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Bits per second.
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

/// Rates from a list.
#[derive(Clone, Debug)]
pub struct Steps {
    /// When the rate becomes what, by time.
    changes: Vec<(Time, u64)>,
    /// The rate before the first change, in bits per second.
    initial: u64,
    /// After how long the list begins anew, in nanoseconds.
    period: Option<u64>,
}

impl Steps {
    /// `initial` bits per second until the first of `changes`, each a moment and the rate from then on.
    /// Of several changes at one moment the last holds.
    pub fn new(initial: u64, mut changes: Vec<(Time, u64)>) -> Self {
        changes.sort_by_key(|(at, _)| *at);
        Self {
            changes,
            initial,
            period: None,
        }
    }

    /// Begins the list anew, with the initial rate, every `period`, which is at least a nanosecond.
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
        let next = self.changes.partition_point(|(at, _)| *at <= now);
        Segment {
            bits_per_second: match next.checked_sub(1) {
                Some(last) => self.changes[last].1,
                None => self.initial,
            },
            until: Time::from_nanos(match self.changes.get(next) {
                Some((at, _)) => base.saturating_add(at.as_nanos()).min(end),
                None => end,
            }),
        }
    }
}

/// A rate that wanders about its mean: an Ornstein-Uhlenbeck process, sampled, and never below 0.
#[derive(Clone, Debug)]
pub struct OrnsteinUhlenbeck {
    /// Bits per second.
    mean: f64,
    /// How far the present sample is from the mean.
    deviation: f64,
    /// What is left of a deviation after a sampling period.
    memory: f64,
    /// The standard deviation of what a sampling period adds.
    kick: f64,
    /// The sampling period, in nanoseconds.
    period: u64,
    /// Which sample the present one is.
    index: u64,
    /// What kicks.
    rng: Pcg64Mcg,
}

impl OrnsteinUhlenbeck {
    /// A process of this `mean` and standard deviation `sigma`, in bits per second, that forgets a
    /// deviation with the time constant `tau`, and has one rate for each sampling `period`.
    pub fn new(mean: f64, sigma: f64, tau: Duration, period: Duration, seed: Seed) -> Self {
        let mut rng = seed.of("rate").rng();
        let memory = match tau.as_secs_f64() {
            0.0 => 0.0,
            tau => libm::exp(-period.as_secs_f64() / tau),
        };
        Self {
            mean,
            deviation: sigma * normal(&mut rng),
            memory,
            kick: sigma * (1.0 - memory * memory).sqrt(),
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
            self.deviation = self.memory * self.deviation + self.kick * normal(&mut self.rng);
            self.index += 1;
        }
        Segment {
            bits_per_second: bits_per_second(self.mean + self.deviation),
            until: Time::from_nanos((index + 1).saturating_mul(self.period)),
        }
    }
}

/// A rate that jumps between states, and stays in each for a time without memory (exponential).
///
/// The next state is any of the others, with equal chance; so two states make an on-off process.
#[derive(Clone, Debug)]
pub struct Markov {
    /// What it jumps between.
    states: Vec<State>,
    /// Where it is.
    present: usize,
    /// Until when.
    until: Time,
    /// What throws it.
    rng: Pcg64Mcg,
}

/// A state of a [`Markov`] process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The rate in it.
    pub bits_per_second: u64,
    /// How long it lasts, on average; at least a microsecond.
    pub mean_dwell: Duration,
}

impl Markov {
    /// Begins in a state of `states` as an observer would find it: with a chance in proportion to its
    /// dwell. Without states nothing is sent.
    pub fn new(states: Vec<State>, seed: Seed) -> Self {
        let mut rng = seed.of("rate").rng();
        let total: Duration = states.iter().map(|state| state.mean_dwell).sum();
        let mut point = total.mul_f64(unit(&mut rng));
        let found = states.iter().position(|state| {
            let inside = point < state.mean_dwell;
            point = point.saturating_sub(state.mean_dwell);
            inside
        });
        let mut process = Self {
            states,
            present: found.unwrap_or(0),
            until: Time::ZERO,
            rng,
        };
        process.until = process.dwell(Time::ZERO);
        process
    }

    /// `bits_per_second` for `on` on average, then nothing for `off` on average.
    pub fn on_off(bits_per_second: u64, on: Duration, off: Duration, seed: Seed) -> Self {
        let state = |bits_per_second, mean_dwell| State {
            bits_per_second,
            mean_dwell,
        };
        Self::new(vec![state(bits_per_second, on), state(0, off)], seed)
    }

    /// When the present state, that began at `now`, ends.
    fn dwell(&mut self, now: Time) -> Time {
        let Some(state) = self
            .states
            .get(self.present)
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
            self.present = (self.present + hop) % self.states.len();
            self.until = self.dwell(self.until);
        }
        Segment {
            bits_per_second: self
                .states
                .get(self.present)
                .map_or(0, |state| state.bits_per_second),
            until: self.until,
        }
    }
}

/// The nearest rate that a server can have.
fn bits_per_second(rate: f64) -> u64 {
    libm::round(rate.max(0.0)) as u64
}

/// A length of time in nanoseconds, not 0.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests;
