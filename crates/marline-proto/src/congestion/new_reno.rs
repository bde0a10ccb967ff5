//! NewReno (RFC 9002, section 7 and appendix B).

use std::sync::Arc;

use super::loss_based::{Growth, GrowthSample, LossBasedController};
use super::{Algorithm, ControllerFactory};
use crate::settings::Entry;

/// Its name in settings.
pub(super) const ENTRY: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain(
    "newreno",
    "RFC 9002: halves the window on a loss, adds one datagram per round trip",
    |()| Arc::new(Algorithm::NewReno),
);

/// Adds one datagram per round trip, and halves the window on a congestion event.
///
/// Emulating N connections it adds N datagrams, and keeps (N - 0.5) / N of the window.
pub type NewReno = LossBasedController<Additive>;

/// Growth by one datagram for each acknowledged window and emulated connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Additive {
    /// Acknowledged bytes that have not grown the window yet.
    acked: u64,
    /// Growth too small for a byte.
    fraction: f64,
}

impl Growth for Additive {
    const NAME: &'static str = ENTRY.name;

    /// RFC 9002, section 7.3.2.
    const BACKOFF: f64 = 0.5;

    const EMULATES: bool = true;

    fn on_congestion(&mut self, _window: u64, _backoff: f64) {
        *self = Self::default();
    }

    fn grow(&mut self, sample: &GrowthSample) -> u64 {
        self.acked = self.acked.saturating_add(sample.acked);
        if self.acked < sample.window {
            return sample.window;
        }
        self.acked -= sample.window;
        let growth = sample.flows * sample.unit + self.fraction;
        self.fraction = growth.fract();
        sample.window.saturating_add(growth as u64)
    }

    /// Bytes acknowledged since then still count.
    fn on_collapse(&mut self) {}

    /// Bytes acknowledged since then still count.
    fn restore(&mut self, _before: Self) {}

    /// Bytes acknowledged before still count, up to one datagram.
    fn on_window_set(&mut self, _before: u64, after: u64) {
        self.acked = self.acked.min(after);
    }
}

#[cfg(test)]
mod tests;
