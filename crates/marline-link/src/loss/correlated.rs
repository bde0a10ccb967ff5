//! netem's correlated loss.

use super::LossModel;
use crate::correlated::CorrelatedEvents;
use crate::{Seed, Time};

/// The model of netem's `loss P CORRELATION`, for comparisons only; netem's manual deprecates it.
///
/// Correlation reduces the loss, down to none at high correlation. Use
/// [`GilbertElliott`](super::GilbertElliott) instead.
pub struct Correlated(CorrelatedEvents);

impl Correlated {
    /// The model with loss probability `share` and correlation `correlation`, both from 0 to 1.
    pub fn new(share: f64, correlation: f64, seed: Seed) -> Self {
        Self(CorrelatedEvents::new(share, correlation, seed))
    }
}

impl LossModel for Correlated {
    fn loses(&mut self, _now: Time) -> bool {
        self.0.happens()
    }
}
