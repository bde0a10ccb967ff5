//! Scalable TCP (Kelly, CCR 2003): a window that grows in proportion to the bytes acknowledged.

use std::sync::Arc;

use marline::congestion::{ControllerFactory, Growth, GrowthSample, LossBasedController, PerPath};
use marline::settings::Entry;

/// Its name in settings.
pub(crate) static ENTRY: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain(
    "scalable",
    "Scalable TCP: a hundredth of what is acknowledged, an eighth less for a loss",
    |()| {
        Arc::new(PerPath(|config| {
            Box::new(LossBasedController::<Proportional>::new(config))
        }))
    },
);

/// Growth in proportion to the bytes acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Proportional {
    /// Growth too small for a byte.
    fraction: f64,
}

impl Growth for Proportional {
    const NAME: &'static str = "scalable";

    const BACKOFF: f64 = 0.875;

    fn on_congestion(&mut self, _window: u64, _backoff: f64) {
        *self = Self::default();
    }

    fn grow(&mut self, step: &GrowthSample) -> u64 {
        let growth = 0.01 * step.share * step.acked as f64 + self.fraction;
        self.fraction = growth.fract();
        step.window.saturating_add(growth as u64)
    }

    fn on_window_set(&mut self, _before: u64, _after: u64) {}
}
