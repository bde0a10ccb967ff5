//! Packet duplication.

use rand_pcg::Pcg64Mcg;

use crate::exit_queue::ExitQueue;
use crate::random::bernoulli;
use crate::{Exit, Link, Packet, Seed, Time};

/// Duplicates random packets; the copy follows the original immediately.
pub struct Duplicate<B> {
    share: f64,
    rng: Pcg64Mcg,
    out: ExitQueue<B>,
}

impl<B> Duplicate<B> {
    /// Duplicates `share` of the packets, from 0 to 1.
    pub fn new(share: f64, seed: Seed) -> Self {
        Self {
            share,
            rng: seed.rng(),
            out: ExitQueue::new(),
        }
    }
}

impl<B: Clone + Send> Link<B> for Duplicate<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        if bernoulli(&mut self.rng, self.share) {
            self.out.push(Exit::arrived(now, packet.clone()));
        }
        self.out.push(Exit::arrived(now, packet));
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.out.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.out.next_event()
    }
}
