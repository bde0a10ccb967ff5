//! Packets that arrive twice.

use rand_pcg::Pcg64Mcg;

use crate::exit_queue::Out;
use crate::random::happens;
use crate::{Exit, Link, Packet, Seed, Time};

/// Sends some packets twice, the copy right behind the original.
pub struct Duplicate<B> {
    share: f64,
    rng: Pcg64Mcg,
    out: Out<B>,
}

impl<B> Duplicate<B> {
    /// `share` of the packets, from 0 to 1, come twice.
    pub fn new(share: f64, seed: Seed) -> Self {
        Self {
            share,
            rng: seed.rng(),
            out: Out::new(),
        }
    }
}

impl<B: Clone + Send> Link<B> for Duplicate<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        if happens(&mut self.rng, self.share) {
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
