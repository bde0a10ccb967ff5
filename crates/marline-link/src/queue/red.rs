//! Random early detection (Floyd and Jacobson, 1993): drops the more often the longer the queue is on
//! average.

use std::collections::VecDeque;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use super::{Fifo, Queue};
use crate::random::happens;
use crate::{DropReason, Ecn, Exit, Packet, Seed, Time};

/// The settings of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Bytes on average up to which nothing is dropped.
    pub min_bytes: u64,
    /// Bytes on average at which `max_probability` is reached; more than `min_bytes`.
    pub max_bytes: u64,
    /// How likely a packet is dropped at `max_bytes`.
    pub max_probability: f64,
    /// How much the present length counts in the average.
    pub weight: f64,
    /// Whether the probability goes up to 1 between `max_bytes` and twice that, instead of at once.
    pub gentle: bool,
    /// Whether packets that are ECN-capable are marked instead of dropped, until the probability is 1
    /// (RFC 3168, section 7).
    pub ecn: bool,
    /// Bytes that may wait in all; at least a packet's.
    pub limit_bytes: u64,
    /// How long a packet takes to send: so fast the average falls while nothing waits.
    pub packet_time: Duration,
}

impl RedConfig {
    /// The usual settings for a buffer of `limit_bytes` at `bits_per_second`: thresholds at a twelfth
    /// and a quarter of it, a tenth dropped at the upper, gentle, and without ECN.
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

    /// How likely a packet is dropped at an average of `bytes`, before drops are spread out.
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

/// A queue that RED manages, up to a limit.
pub struct Red<B> {
    /// What waits.
    fifo: Fifo<B>,
    /// The settings.
    config: RedConfig,
    /// The average length, in bytes.
    average: f64,
    /// Since when nothing waits, if nothing does.
    idle: Option<Time>,
    /// Packets since the last drop, while drops are likely at all.
    spared: Option<u32>,
    /// What throws the dice.
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

    /// A packet comes: where is the average?
    fn observe(&mut self, now: Time) {
        let keep = 1.0 - self.config.weight;
        if let Some(since) = self.idle.take() {
            let packet_time = self.config.packet_time.as_secs_f64().max(1e-9);
            self.average *= libm::pow(keep, now.since(since).as_secs_f64() / packet_time);
        }
        self.average = keep * self.average + self.config.weight * self.fifo.bytes() as f64;
    }

    /// Whether the packet that comes is to be dropped, or marked.
    fn chooses(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            self.spared = None;
            return false;
        }
        // Uniform between drops, not geometric: without clusters.
        let spared = self.spared.map_or(0, |spared| spared.saturating_add(1));
        let rest = 1.0 - f64::from(spared) * probability;
        let chosen = rest <= 0.0 || happens(&mut self.rng, probability / rest);
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
        let (_, packet) = self.fifo.pop()?;
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
