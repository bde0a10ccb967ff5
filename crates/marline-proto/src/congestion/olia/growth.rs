//! Growth of a window as the coupling determines it.

use crate::congestion::loss_based::{Growth, GrowthSample};

/// Growth like Reno's, scaled by the coupling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coupled {
    /// Datagrams in a round trip; may be negative.
    pub(super) growth: f64,
    /// Bytes acknowledged between the last two losses.
    pub(super) between_losses: u64,
    /// Bytes acknowledged since the last loss.
    pub(super) since_loss: u64,
    losses: u64,
    /// Growth too small for a byte.
    fraction: f64,
}

impl Default for Coupled {
    /// Growth with a single path.
    fn default() -> Self {
        Self {
            growth: 1.0,
            between_losses: 0,
            since_loss: 0,
            losses: 0,
            fraction: 0.0,
        }
    }
}

impl Growth for Coupled {
    const NAME: &'static str = super::ENTRY.name;

    /// As Reno (Khalili et al., section IV).
    const BACKOFF: f64 = 0.5;

    fn on_congestion(&mut self, _window: u64, _backoff: f64) {
        self.between_losses = std::mem::take(&mut self.since_loss);
        self.losses += 1;
        self.fraction = 0.0;
    }

    fn grow(&mut self, sample: &GrowthSample) -> u64 {
        self.fraction += self.growth * sample.unit * sample.acked as f64 / sample.window as f64;
        let whole = self.fraction.trunc();
        self.fraction -= whole;
        sample.window.saturating_add_signed(whole as i64)
    }

    /// The loss was spurious: the count of delivered bytes continues.
    fn restore(&mut self, before: Self) {
        if self.losses != before.losses {
            self.between_losses = before.between_losses;
            self.since_loss = self.since_loss.saturating_add(before.since_loss);
        }
    }

    fn on_window_set(&mut self, _before: u64, _after: u64) {}
}
