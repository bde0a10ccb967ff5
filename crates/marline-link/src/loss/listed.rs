//! Deterministic losses.

use std::num::NonZeroU64;

use super::LossModel;
use crate::Time;

/// Loses every k-th packet.
#[derive(Clone, Copy, Debug)]
pub struct Every {
    period: NonZeroU64,
    seen: u64,
}

impl Every {
    /// Loses packet number `period` and every `period`-th after it.
    pub const fn new(period: NonZeroU64) -> Self {
        Self { period, seen: 0 }
    }
}

impl LossModel for Every {
    fn loses(&mut self, _now: Time) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.period.get())
    }
}

/// Loses the packets with listed numbers.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Sorted packet numbers.
    indices: Vec<u64>,
    next: usize,
    seen: u64,
}

impl Listed {
    /// Loses the packets with these numbers, from 0.
    pub fn new(mut indices: Vec<u64>) -> Self {
        indices.sort_unstable();
        indices.dedup();
        Self {
            indices,
            next: 0,
            seen: 0,
        }
    }
}

impl LossModel for Listed {
    fn loses(&mut self, _now: Time) -> bool {
        let hit = self.indices.get(self.next) == Some(&self.seen);
        self.next += usize::from(hit);
        self.seen += 1;
        hit
    }
}
