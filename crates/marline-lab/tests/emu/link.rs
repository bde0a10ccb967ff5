//! Links for these tests.

use std::time::Duration;

use marline_link::loss::Bernoulli;
use marline_link::queue::{DropTail, Limit};
use marline_link::{Chain, Delay, FilterLink, Link, Loss, Rate, Seed};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) bits_per_second: u64,
    pub(crate) buffer: Duration,
    pub(crate) loss: f64,
    pub(crate) delay: Duration,
}

impl Spec {
    pub(crate) const fn delay(millis: u64) -> Self {
        Self {
            bits_per_second: marline_link::UNLIMITED,
            buffer: Duration::ZERO,
            loss: 0.0,
            delay: Duration::from_millis(millis),
        }
    }

    /// Rate and buffer, then loss, then delay.
    pub(crate) fn build<B: Send + 'static>(self, seed: Seed) -> Box<dyn Link<B>> {
        let limit = Limit::time(self.buffer, self.bits_per_second);
        let rate = Rate::new(self.bits_per_second, Box::new(DropTail::new(limit)));
        let loss = FilterLink::new(Loss(Bernoulli::new(self.loss, seed.of("loss"))));
        Box::new(Chain::new(vec![
            Box::new(rate),
            Box::new(loss),
            Box::new(Delay::new(self.delay)),
        ]))
    }
}
