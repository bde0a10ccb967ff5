//! A minimal link of these tests, independent of `marline-link`'s models.

use std::collections::VecDeque;
use std::time::Duration;

use marline_link::{DropReason, Duplex, Exit, Link, Medium, Packet, Seed, Time};
use marline_sim::Datagram;
use rand::Rng;

/// A link that serves packets at a rate from a queue, loses some, and delays the others.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    pub(crate) bits_per_second: u64,
    pub(crate) delay: Duration,
    /// Lost packets per 10,000.
    pub(crate) loss: u64,
    /// Packets with a flipped bit per 10,000.
    pub(crate) corruption: u64,
    /// Queue limit in bytes.
    pub(crate) buffer: u64,
    pub(crate) seed: Seed,
}

impl Pipe {
    pub(crate) fn new(mbps: u64, delay_ms: u64) -> Self {
        Self {
            bits_per_second: mbps * 1_000_000,
            delay: Duration::from_millis(delay_ms),
            loss: 0,
            corruption: 0,
            buffer: u64::MAX,
            seed: Seed::new(0),
        }
    }

    pub(crate) fn link(&self, purpose: &str) -> Box<dyn Link<Datagram>> {
        Box::new(Running {
            rng: self.seed.of(purpose).rng(),
            pipe: self.clone(),
            free: Time::ZERO,
            exits: VecDeque::new(),
            drops: VecDeque::new(),
        })
    }

    pub(crate) fn duplex(&self, name: &str) -> Box<dyn Medium<Datagram>> {
        let [there, back] = ["there", "back"].map(|way| self.link(&format!("{name} {way}")));
        Box::new(Duplex::new(there, back))
    }
}

struct Running<R> {
    pipe: Pipe,
    rng: R,
    /// Time at which the last queued packet has been served.
    free: Time,
    exits: VecDeque<Exit<Datagram>>,
    drops: VecDeque<Exit<Datagram>>,
}

impl<R: Rng + Send> Link<Datagram> for Running<R> {
    fn push(&mut self, now: Time, mut packet: Packet<Datagram>) {
        let rate = self.pipe.bits_per_second;
        let nanos = |bytes: u64| (u128::from(bytes) * 8_000_000_000 / u128::from(rate)) as u64;
        let backlog = self.free.since(now).as_nanos() * u128::from(rate) / 8_000_000_000;
        if backlog + u128::from(packet.size) > u128::from(self.pipe.buffer) {
            let exit = Exit::dropped(now, packet, DropReason::QueueFull);
            return self.drops.push_back(exit);
        }
        let service = Duration::from_nanos(nanos(packet.size.into()));
        self.free = self.free.max(now) + service;
        let at = self.free + self.pipe.delay;
        let lost = self.rng.next_u64() % 10_000 < self.pipe.loss;
        let bit = self.rng.next_u64();
        packet.corrupted = (self.rng.next_u64() % 10_000 < self.pipe.corruption).then_some(bit);
        self.exits.push_back(if lost {
            Exit::dropped(at, packet, DropReason::Loss)
        } else {
            Exit::arrived(at, packet)
        });
    }

    fn pop(&mut self, now: Time) -> Option<Exit<Datagram>> {
        [&mut self.drops, &mut self.exits]
            .into_iter()
            .filter(|exits| exits.front().is_some_and(|exit| exit.at <= now))
            .min_by_key(|exits| exits.front().map(|exit| exit.at))?
            .pop_front()
    }

    fn next_event(&self) -> Option<Time> {
        let exits = [&self.drops, &self.exits].into_iter();
        exits.filter_map(|exits| Some(exits.front()?.at)).min()
    }
}
