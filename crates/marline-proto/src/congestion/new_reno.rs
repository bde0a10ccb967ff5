//! NewReno (RFC 9002, section 7 and appendix B).

use super::loss_based::{Growth, LossBased, Step};

/// One datagram more per round trip, half the window less per congestion event.
pub type NewReno = LossBased<Additive>;

/// Growth by one datagram for each window that is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Additive {
    /// Bytes acknowledged that have not grown the window yet.
    acked: u64,
    /// Growth too small for a byte.
    fraction: f64,
}

impl Growth for Additive {
    const NAME: &'static str = "newreno";

    /// RFC 9002, section 7.3.2.
    const BACKOFF: f64 = 0.5;

    fn on_congestion(&mut self, _window: u64, _backoff: f64) {
        *self = Self::default();
    }

    fn grow(&mut self, step: &Step) -> u64 {
        self.acked = self.acked.saturating_add(step.acked);
        if self.acked < step.window {
            return step.window;
        }
        self.acked -= step.window;
        let growth = step.unit + self.fraction;
        self.fraction = growth.fract();
        step.window.saturating_add(growth as u64)
    }

    /// What is acknowledged since counts.
    fn on_collapse(&mut self) {}

    /// What is acknowledged since counts.
    fn restore(&mut self, _before: Self) {}

    /// What is acknowledged already counts, for one datagram at most.
    fn on_window_set(&mut self, _before: u64, after: u64) {
        self.acked = self.acked.min(after);
    }
}

#[cfg(test)]
mod tests;
