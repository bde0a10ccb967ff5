//! RED: random early detection (Floyd and Jacobson, 1993), which drops with a probability that grows
//! with the average queue length.

use std::collections::VecDeque;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use super::{Fifo, Queue, Queued};
use crate::random::bernoulli;
use crate::{DropReason, Ecn, Exit, Packet, Seed, Time};

/// The settings of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Average queue length in bytes up to which nothing is dropped.
    pub min_bytes: u64,
    /// Average queue length in bytes at which `max_probability` is reached; above `min_bytes`.
    pub max_bytes: u64,
    /// Drop probability at `max_bytes`.
    pub max_probability: f64,
    /// Weight of the current length in the average.
    pub weight: f64,
    /// Whether the probability rises to 1 between `max_bytes` and twice that (gentle RED), or immediately.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped, until the probability is 1
    /// (RFC 3168, section 7).
    pub ecn: bool,
    /// Queue limit in bytes, at least one packet.
    pub limit_bytes: u64,
    /// Transmission time of a packet: the time constant with which the average decays while idle.
    pub packet_time: Duration,
}

impl RedConfig {
    /// Common settings for a buffer of `limit_bytes` at `bits_per_second`: thresholds at 1/12 and 1/4
    /// of the buffer, maximum probability 0.1, gentle, without ECN.
    pub fn new(limit_bytes: u64, bits_per_second: u64) -> Self {
        let bits = 1500 * 8 * 1_000_000_000;
        Self {
            min_bytes: limit_bytes / 12,
            max_bytes: limit_bytes / 4,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: false,
            limit_bytes,
            packet_time: Duration::from_nanos(bits / bits_per_second.max(1)),
        }
    }

    /// Drop probability at an average of `bytes`, before drops are spaced.
    fn probability(&self, bytes: f64) -> f64 {
        let (min, max) = (self.min_bytes as f64, self.max_bytes as f64);
        if bytes < min {
            0.0
        } else if bytes < max {
            self.max_probability * (bytes - min) / (max - min)
        } else if self.gentle && bytes < 2.0 * max {
            self.max_probability + (1.0 - self.max_probability) * (bytes - max) / max
        } else {
            1.0
        }
    }
}

/// A FIFO queue managed by RED, with a limit.
pub struct Red<B> {
    /// Queued packets.
    fifo: Fifo<B>,
    /// The settings.
    config: RedConfig,
    /// Average queue length in bytes.
    average: f64,
    /// Time since which the queue is empty, if it is.
    idle: Option<Time>,
    /// Packets since the last drop, while the drop probability is above 0.
    spared: Option<u32>,
    /// Random number generator.
    rng: Pcg64Mcg,
}

impl<B> Red<B> {
    /// An empty queue.
    pub fn new(config: RedConfig, seed: Seed) -> Self {
        Self {
            fifo: Fifo::new(),
            config,
            average: 0.0,
            idle: Some(Time::ZERO),
            spared: None,
            rng: seed.of("red").rng(),
        }
    }

    /// Updates the average at the arrival of a packet.
    fn observe(&mut self, now: Time) {
        let keep = 1.0 - self.config.weight;
        if let Some(since) = self.idle.take() {
            let packet_time = self.config.packet_time.as_secs_f64().max(1e-9);
            self.average *= libm::pow(keep, now.since(since).as_secs_f64() / packet_time);
        }
        self.average = keep * self.average + self.config.weight * self.fifo.bytes() as f64;
    }

    /// Whether the arriving packet is dropped or marked.
    fn chooses(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            self.spared = None;
            return false;
        }
        // Uniform gaps between drops instead of geometric ones, which avoids clusters of drops.
        let spared = self.spared.map_or(0, |spared| spared.saturating_add(1));
        let rest = 1.0 - f64::from(spared) * probability;
        let chosen = rest <= 0.0 || bernoulli(&mut self.rng, probability / rest);
        self.spared = Some(if chosen { 0 } else { spared });
        chosen
    }
}

impl<B: Send> Queue<B> for Red<B> {
    fn enqueue(&mut self, now: Time, mut packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        self.observe(now);
        let probability = self.config.probability(self.average);
        let chosen = self.chooses(probability);
        let marked = chosen && probability < 1.0 && self.config.ecn && packet.ecn.is_capable();
        if marked {
            packet.ecn = Ecn::Ce;
        }
        let full = self.fifo.bytes() + u64::from(packet.size) > self.config.limit_bytes;
        if full || (chosen && !marked) {
            let reason = if full {
                DropReason::QueueFull
            } else {
                DropReason::QueueManagement
            };
            exits.push_back(Exit::dropped(now, packet, reason));
            self.idle = self.fifo.is_empty().then_some(now);
        } else {
            self.fifo.push(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        let Queued { packet, .. } = self.fifo.pop()?;
        self.idle = self.fifo.is_empty().then_some(now);
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }
}

#[cfg(test)]
mod tests;
