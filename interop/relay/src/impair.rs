//! Losses and corruption of one direction.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::config::{Config, Direction, Drops};

/// The outcome of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Forward,
    /// Forwarded with one byte changed.
    Corrupted,
    /// Lost at random.
    Lost,
    /// Dropped because its number is listed.
    Listed,
}

/// The impairments of one direction.
pub(crate) struct Impairment {
    rng: Pcg64,
    loss: f64,
    corrupt: f64,
    burst: u32,
    drops: Drops,
    /// Datagrams seen.
    seen: u64,
    /// Losses since the last datagram that passed.
    in_a_row: u32,
}

impl Impairment {
    pub(crate) fn new(config: &Config, direction: Direction) -> Self {
        let (stream, drops) = match direction {
            Direction::ToServer => (0, &config.drop_to_server),
            Direction::ToClient => (1, &config.drop_to_client),
        };
        Self {
            rng: Pcg64::seed_from_u64(config.seed.wrapping_mul(2).wrapping_add(stream)),
            loss: config.loss / 100.0,
            corrupt: config.corrupt / 100.0,
            burst: config.burst,
            drops: drops.clone(),
            seen: 0,
            in_a_row: 0,
        }
    }

    /// Decides the outcome of the next datagram, and changes a byte of it if it is to be corrupted.
    pub(crate) fn apply(&mut self, datagram: &mut [u8]) -> Outcome {
        self.seen += 1;
        // Drawn for each datagram, so that one setting does not shift the other's outcomes.
        let (loss, corrupt): (f64, f64) = (self.rng.random(), self.rng.random());
        let (place, mask) = (self.rng.random::<u64>(), self.rng.random_range(1..=255));
        if self.drops.contains(self.seen) {
            return Outcome::Listed;
        }
        let may_lose = self.burst == 0 || self.in_a_row < self.burst;
        if loss < self.loss && may_lose {
            self.in_a_row += 1;
            return Outcome::Lost;
        }
        self.in_a_row = 0;
        if corrupt < self.corrupt && !datagram.is_empty() {
            let index = place % datagram.len() as u64;
            datagram[index as usize] ^= mask;
            return Outcome::Corrupted;
        }
        Outcome::Forward
    }
}

#[cfg(test)]
mod tests;
