//! netem's correlated loss.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::LossModel;
use crate::{Seed, Time};

/// The model of netem's `loss P CORRELATION`, for comparisons only; netem's manual deprecates it.
///
/// A low-pass filtered uniform value is compared with the loss probability. The filter narrows the
/// distribution, so that correlation reduces the loss, down to none at high correlation. Use
/// [`GilbertElliott`](super::GilbertElliott) instead.
pub struct Correlated {
    /// In units of 2^-32, as in netem.
    share: u64,
    correlation: u64,
    last: u64,
    rng: Pcg64Mcg,
}

impl Correlated {
    /// The model with loss probability `share` and correlation `correlation`, both from 0 to 1.
    pub fn new(share: f64, correlation: f64, seed: Seed) -> Self {
        let scaled = |share: f64| (share * f64::from(u32::MAX)) as u64;
        let mut rng = seed.rng();
        Self {
            share: scaled(share),
            correlation: scaled(correlation),
            last: rng.next_u64() >> 32,
            rng,
        }
    }
}

impl LossModel for Correlated {
    fn loses(&mut self, _now: Time) -> bool {
        const ONE: u64 = 1 << 32;
        let fresh = self.rng.next_u64() >> 32;
        self.last = (fresh * (ONE - self.correlation) + self.last * self.correlation) >> 32;
        self.last < self.share
    }
}
