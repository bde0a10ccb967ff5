//! Delay that varies.
//!
//! Every packet takes the base delay and a deviation from it, drawn from a [`Law`]. How deviations
//! follow each other and whether packets may overtake is the [`JitterConfig`]'s. What comes out is
//! never before what went in: where a law falls below, the delay is zero.

mod distribution;
mod table;

#[cfg(test)]
mod tests;

pub use distribution::Law;
pub use table::{Table, TableError};

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use crate::random::normal;
use crate::{Exit, Link, Packet, Seed, Time};

/// How delay varies.
#[derive(Clone, Debug)]
pub struct JitterConfig {
    /// The delay that deviations are added to, one way.
    pub base: Duration,
    /// How much it varies; what that is of the distribution, [`Law`] says.
    pub jitter: Duration,
    /// How deviations are distributed.
    pub law: Law,
    /// Over which time deviations resemble each other: their correlation falls to 1/e in it
    /// (Ornstein and Uhlenbeck), however many packets pass. Zero: not at all.
    pub correlation: Duration,
    /// Packets that come within this time of the first of them share a deviation, as packets do that
    /// travel in one frame. Zero: each has its own.
    pub batch: Duration,
    /// Whether packets overtake each other. If not, one that is late keeps those behind it waiting,
    /// as radios do.
    pub reorder: bool,
}

impl JitterConfig {
    /// Independent deviations, order kept.
    pub const fn new(base: Duration, jitter: Duration, law: Law) -> Self {
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
    /// What deviations are made from, standard normal, and of which moment it is.
    state: Option<(Time, f64)>,
    /// The delay of the present batch, and when that began.
    batch: Option<(Time, Duration)>,
    /// What is under way; the next to leave is at the top.
    line: BinaryHeap<Waiting<B>>,
    pushed: u64,
    /// When the last packet leaves, of those that keep their order.
    last: Time,
}

impl<B> Jitter<B> {
    /// A line with its own draws.
    pub fn new(config: JitterConfig, seed: Seed) -> Self {
        Self {
            config,
            rng: seed.rng(),
            state: None,
            batch: None,
            line: BinaryHeap::new(),
            pushed: 0,
            last: Time::ZERO,
        }
    }

    /// The delay of a packet that comes now.
    fn delay(&mut self, now: Time) -> Duration {
        if let Some((began, delay)) = self.batch
            && now.since(began) < self.config.batch
        {
            return delay;
        }
        let normal = self.normal(now);
        let jitter = self.config.jitter.as_nanos() as f64;
        let deviation = self.config.law.deviation(normal, jitter, &mut self.rng);
        // `as` keeps what is below zero, or too large, at the bound.
        let delay = (self.config.base.as_nanos() as f64 + deviation).round() as u64;
        let delay = Duration::from_nanos(delay);
        self.batch = Some((now, delay));
        delay
    }

    /// A standard normal number that resembles the last one, the more so the less time has passed.
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
        let mut at = now + self.delay(now);
        if !self.config.reorder {
            at = at.max(self.last);
            self.last = at;
        }
        self.line.push(Waiting {
            at,
            order: self.pushed,
            packet,
        });
        self.pushed += 1;
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        let due = self.line.peek()?.at <= now;
        let next = due.then(|| self.line.pop())??;
        Some(Exit::arrived(next.at, next.packet))
    }

    fn next_event(&self) -> Option<Time> {
        self.line.peek().map(|next| next.at)
    }
}

/// A packet under way; greater is what leaves first, of equals what came first.
struct Waiting<B> {
    at: Time,
    order: u64,
    packet: Packet<B>,
}

impl<B> Ord for Waiting<B> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<B> PartialOrd for Waiting<B> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B> PartialEq for Waiting<B> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<B> Eq for Waiting<B> {}
