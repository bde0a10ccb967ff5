//! Delay variation.
//!
//! Every packet takes the base delay plus a deviation drawn from a [`Distribution`].
//! [`JitterConfig`] sets how successive deviations are correlated and whether packets may be
//! reordered. A total delay below zero counts as zero.

mod distribution;
mod table;

#[cfg(test)]
mod tests;

pub use distribution::Distribution;
pub use table::{Moments, Table, TableError};

use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use crate::delay_line::DelayLine;
use crate::random::normal;
use crate::{Exit, Link, Packet, Seed, Time};

/// The settings of a varying delay.
#[derive(Clone, Debug)]
pub struct JitterConfig {
    /// One-way delay to which deviations are added.
    pub base: Duration,
    /// The scale of deviations; its meaning is defined by [`Distribution`].
    pub jitter: Duration,
    /// The distribution of deviations.
    pub law: Distribution,
    /// Correlation time of deviations: their autocorrelation falls to 1/e within it (Ornstein-Uhlenbeck
    /// process), independent of the number of packets. Zero: uncorrelated.
    pub correlation: Duration,
    /// Duration of a batch, whose packets share one deviation like the packets of one radio frame.
    /// Zero: each packet has its own.
    pub batch: Duration,
    /// Whether packets may overtake each other. Otherwise a late packet delays those behind it, as on radio links.
    pub reorder: bool,
}

impl JitterConfig {
    /// Uncorrelated deviations; packets keep their order.
    pub const fn new(base: Duration, jitter: Duration, law: Distribution) -> Self {
        Self {
            base,
            jitter,
            law,
            correlation: Duration::ZERO,
            batch: Duration::ZERO,
            reorder: false,
        }
    }
}

/// A delay line whose delay varies.
pub struct Jitter<B> {
    config: JitterConfig,
    rng: Pcg64Mcg,
    /// Last standard normal value for deviations, and its time.
    state: Option<(Time, f64)>,
    /// The current batch: its start and its delay.
    batch: Option<(Time, Duration)>,
    line: DelayLine<B>,
}

impl<B> Jitter<B> {
    /// A delay line with its own random number generator.
    pub fn new(config: JitterConfig, seed: Seed) -> Self {
        Self {
            line: DelayLine::new(config.reorder),
            config,
            rng: seed.rng(),
            state: None,
            batch: None,
        }
    }

    /// The delay of a packet that arrives at `now`.
    fn delay(&mut self, now: Time) -> Duration {
        if let Some((began, delay)) = self.batch
            && now.since(began) < self.config.batch
        {
            return delay;
        }
        let normal = self.normal(now);
        let jitter = self.config.jitter.as_nanos() as f64;
        let deviation = self.config.law.deviation(normal, jitter, &mut self.rng);
        // `as` saturates below zero and above the maximum.
        let delay = (self.config.base.as_nanos() as f64 + deviation).round() as u64;
        let delay = Duration::from_nanos(delay);
        self.batch = Some((now, delay));
        delay
    }

    /// A standard normal value, correlated with the last one according to the time between them.
    fn normal(&mut self, now: Time) -> f64 {
        let fresh = normal(&mut self.rng);
        let next = match self.state {
            Some((at, last)) if !self.config.correlation.is_zero() => {
                let ages =
                    now.since(at).as_nanos() as f64 / self.config.correlation.as_nanos() as f64;
                let kept = libm::exp(-ages);
                last * kept + fresh * (1.0 - kept * kept).sqrt()
            }
            _ => fresh,
        };
        self.state = Some((now, next));
        next
    }
}

impl<B: Send> Link<B> for Jitter<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        let at = now + self.delay(now);
        self.line.push(at, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.line.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.line.next_event()
    }
}
