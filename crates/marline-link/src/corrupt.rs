//! Bit errors.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::random::bernoulli;
use crate::{DropReason, Filter, Packet, Seed, Time};

/// Marks random packets as corrupted by one bit error. Sets [`Packet::corrupted`]; the caller flips the bit.
pub struct Corrupt {
    share: f64,
    rng: Pcg64Mcg,
}

impl Corrupt {
    /// Corrupts `share` of the packets, from 0 to 1.
    pub fn new(share: f64, seed: Seed) -> Self {
        Self {
            share,
            rng: seed.rng(),
        }
    }
}

impl Filter for Corrupt {
    fn inspect<B>(&mut self, _now: Time, packet: &mut Packet<B>) -> Option<DropReason> {
        // Both values are always drawn, so that the draws of later packets do not depend on this one's.
        let (hit, bit) = (bernoulli(&mut self.rng, self.share), self.rng.next_u64());
        if hit {
            packet.corrupted = Some(bit);
        }
        None
    }
}
