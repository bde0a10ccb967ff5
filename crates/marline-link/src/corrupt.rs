//! Bits that flip.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::random::happens;
use crate::{DropReason, Guard, Packet, Seed, Time};

/// Flips one bit of some packets: sets [`Packet::corrupted`], the caller's bytes are the caller's.
pub struct Corrupt {
    share: f64,
    rng: Pcg64Mcg,
}

impl Corrupt {
    /// `share` of the packets, from 0 to 1, get a bit flipped.
    pub fn new(share: f64, seed: Seed) -> Self {
        Self {
            share,
            rng: seed.rng(),
        }
    }
}

impl Guard for Corrupt {
    fn inspect<B>(&mut self, _now: Time, packet: &mut Packet<B>) -> Option<DropReason> {
        // Both draws always, so that the next packet's do not depend on this one's fate.
        let (hit, bit) = (happens(&mut self.rng, self.share), self.rng.next_u64());
        if hit {
            packet.corrupted = Some(bit);
        }
        None
    }
}
