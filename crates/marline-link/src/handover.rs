//! Hand-overs between satellites or cells at fixed times.

use std::time::Duration;

use crate::delay_line::DelayLine;
use crate::process::{RateProcess, Segment, scaled};
use crate::random::uniform;
use crate::{DropReason, Exit, Filter, Link, Packet, Seed, Time};

#[cfg(test)]
mod tests;

/// Periods of equal length, each with a delay and a rate of its own, as between a terminal and the satellite that a
/// scheduler assigns to it for 15 s (Starlink: Mohan et al., "A Multifaceted Look at Starlink Performance", WWW 2024).
///
/// The periods depend on the seed and time alone. The first begins before the epoch, at a time that is drawn, so
/// that runs with different seeds meet hand-overs at different times.
#[derive(Clone, Copy, Debug)]
pub struct Handovers {
    config: HandoverConfig,
    /// Time between the start of the first period and the epoch, in nanoseconds.
    phase: u64,
    seed: Seed,
}

/// The settings of hand-overs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandoverConfig {
    /// Length of a period, at least a microsecond.
    pub every: Duration,
    /// The smallest and the largest delay that a period adds, uniformly distributed.
    pub delay: [Duration; 2],
    /// The smallest and the largest share of the rate that a period has, uniformly distributed.
    pub rate: [f64; 2],
    /// The time at the start of a period in which packets are lost.
    pub gap: Duration,
}

/// A period between hand-overs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    delay: Duration,
    rate: f64,
    /// Time since its start.
    age: Duration,
    end: Time,
}

impl Handovers {
    /// Hand-overs with these settings. Links of both directions that have the same seed change together.
    pub fn new(mut config: HandoverConfig, seed: Seed) -> Self {
        config.every = config.every.max(Duration::from_micros(1));
        let share = uniform(&mut seed.of("phase").rng());
        Self {
            phase: (share * config.every.as_nanos() as f64) as u64,
            config,
            seed,
        }
    }

    fn slot(&self, now: Time) -> Slot {
        let every = u64::try_from(self.config.every.as_nanos()).unwrap_or(u64::MAX);
        let time = now.as_nanos().saturating_add(self.phase);
        let (index, age) = (time / every, time % every);
        let mut rng = self.seed.of("slot").nth(index).rng();
        let mut between = |[low, high]: [f64; 2]| low + (high - low) * uniform(&mut rng);
        let delay = between(self.config.delay.map(|delay| delay.as_nanos() as f64));
        Slot {
            delay: Duration::from_nanos(delay.round() as u64),
            rate: between(self.config.rate),
            age: Duration::from_nanos(age),
            end: Time::from_nanos(now.as_nanos().saturating_add(every - age)),
        }
    }

    /// A rate that is `inner` times the share of the current period.
    pub fn rate(self, inner: Box<dyn RateProcess>) -> HandoverRate {
        HandoverRate {
            handovers: self,
            inner,
        }
    }
}

/// Loses packets that arrive in the gap at the start of a period.
impl Filter for Handovers {
    fn inspect<B>(&mut self, now: Time, _packet: &mut Packet<B>) -> Option<DropReason> {
        let lost = !self.config.gap.is_zero() && self.slot(now).age < self.config.gap;
        lost.then_some(DropReason::LinkDown)
    }
}

/// The rate of a link with [`Handovers`].
pub struct HandoverRate {
    handovers: Handovers,
    inner: Box<dyn RateProcess>,
}

impl RateProcess for HandoverRate {
    fn at(&mut self, now: Time) -> Segment {
        let slot = self.handovers.slot(now);
        scaled(self.inner.at(now), slot.rate, slot.end)
    }
}

/// The delay of a link with [`Handovers`]. Packets keep their order.
pub struct HandoverDelay<B> {
    handovers: Handovers,
    line: DelayLine<B>,
}

impl<B> HandoverDelay<B> {
    /// A delay line with the delays of `handovers`.
    pub const fn new(handovers: Handovers) -> Self {
        Self {
            handovers,
            line: DelayLine::new(false),
        }
    }
}

impl<B: Send> Link<B> for HandoverDelay<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        let at = now + self.handovers.slot(now).delay;
        self.line.push(at, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.line.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.line.next_event()
    }
}
