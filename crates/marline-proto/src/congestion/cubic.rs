//! CUBIC (RFC 9438).

use std::sync::Arc;

use super::loss_based::{Growth, GrowthSample, LossBasedController};
use super::{Algorithm, ControllerFactory};
use crate::Instant;
use crate::settings::Entry;

/// Its name in settings.
pub(super) const ENTRY: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain(
    "cubic",
    "RFC 9438: a window that grows as a cubic function of time",
    |()| Arc::new(Algorithm::Cubic),
);

/// The growth constant C, in datagrams per second cubed (RFC 9438, section 5.1).
const C: f64 = 0.4;

/// The target is at most this many times the window (RFC 9438, section 4.4).
const MAX_GROWTH: f64 = 1.5;

/// A window that grows as a cubic function of the time since the last congestion event.
///
/// Emulating N connections it backs off like N of which one lost a packet, and its Reno-friendly region grows like N; the
/// curve is the same.
pub type Cubic = LossBasedController<Curve>;

/// The state of growth; sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Curve {
    /// The window before the latest congestion event, reduced by fast convergence; without an event, the window
    /// at the end of slow start.
    plateau: Option<f64>,
    /// The window just before the latest congestion event.
    prior: f64,
    /// Whether a coordinator has set the window since.
    is_moved: bool,
    epoch: Option<Epoch>,
    /// When sending became app-limited.
    paused_at: Option<Instant>,
}

/// An epoch of congestion avoidance; sizes in bytes.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// The plateau of the curve (W_max).
    plateau: f64,
    /// Seconds from the start to the plateau; negative beyond it.
    k: f64,
    /// The datagram size, or the share of it, that scales the curve.
    unit: f64,
    share: f64,
    /// The window that Reno would have (W_est).
    reno: f64,
    /// Growth too small for a byte.
    fraction: f64,
}

impl Epoch {
    fn new(sample: &GrowthSample, plateau: f64) -> Self {
        let window = sample.window as f64;
        let mut epoch = Self {
            start: sample.now,
            plateau,
            k: 0.0,
            unit: sample.unit,
            share: sample.share,
            reno: window,
            fraction: 0.0,
        };
        epoch.k = epoch.until_plateau(window);
        epoch
    }

    /// Seconds that the curve takes from `window` bytes to the plateau; negative beyond it.
    fn until_plateau(&self, window: f64) -> f64 {
        libm::cbrt((self.plateau - window) / self.unit / C)
    }

    /// The curve `seconds` after the start.
    fn at(&self, seconds: f64) -> f64 {
        let x = seconds - self.k;
        self.plateau + C * x * x * x * self.unit
    }
}

/// Growth in datagrams a round trip with which `flows` connections that keep `backoff` of their window get as much as the
/// same number of Reno connections (alpha; RFC 9438, section 4.3, and for several connections the controllers of gQUIC).
fn reno_friendly_growth(flows: f64, backoff: f64) -> f64 {
    3.0 * flows * flows * (1.0 - backoff) / (1.0 + backoff)
}

impl Curve {
    fn begin(&mut self, sample: &GrowthSample) -> Epoch {
        let window = sample.window as f64;
        let plateau = self.plateau.get_or_insert(window);
        // The minimum window may exceed the window that congestion left.
        if self.epoch.is_none() && !self.is_moved {
            *plateau = plateau.max(window);
        }
        Epoch::new(sample, *plateau)
    }
}

impl Growth for Curve {
    const NAME: &'static str = ENTRY.name;

    /// RFC 9438, section 4.6.
    const BACKOFF: f64 = 0.7;

    const EMULATES: bool = true;

    fn on_congestion(&mut self, window: u64, backoff: f64) {
        let window = window as f64;
        // Fast convergence: a flow that shrinks leaves room for others (RFC 9438, section 4.7).
        let shrinks = self.plateau.is_some_and(|plateau| window < plateau);
        self.plateau = Some(if shrinks {
            window * (1.0 + backoff) / 2.0
        } else {
            window
        });
        self.prior = window;
        self.is_moved = false;
        self.epoch = None;
        self.paused_at = None;
    }

    fn grow(&mut self, sample: &GrowthSample) -> u64 {
        let (window, acked) = (sample.window as f64, sample.acked as f64);
        let mut epoch = match self.epoch {
            Some(epoch) if epoch.share == sample.share => Epoch {
                unit: sample.unit,
                ..epoch
            },
            _ => self.begin(sample),
        };
        // Section 4.3: once Reno's window is back at its earlier size, each connection grows by one datagram a round.
        let alpha = if epoch.reno < self.prior {
            reno_friendly_growth(sample.flows, sample.backoff)
        } else {
            sample.flows
        };
        epoch.reno += alpha * sample.unit * acked / window;
        let elapsed = (sample.now - epoch.start).as_secs_f64();
        let next = if epoch.at(elapsed) < epoch.reno {
            window.max(epoch.reno)
        } else {
            let target = epoch.at(elapsed + sample.rtt.as_secs_f64());
            let growth = target.clamp(window, MAX_GROWTH * window) - window;
            window + epoch.fraction + growth * acked / window
        };
        epoch.fraction = next.fract();
        self.epoch = Some(epoch);
        next as u64
    }

    /// Moves along the curve and keeps the plateau: growth is as fast as it would have been at that height, on either
    /// side of the plateau. A plateau that followed the window would hold back a window that is set every round.
    fn on_window_set(&mut self, before: u64, after: u64) {
        self.is_moved = true;
        if let Some(epoch) = &mut self.epoch {
            let (before, after) = (before as f64, after as f64);
            epoch.k += epoch.until_plateau(after) - epoch.until_plateau(before);
            epoch.reno *= after / before;
        }
    }

    /// Time without data to send does not count (RFC 9438, section 5.8).
    fn pause(&mut self, since: Instant) {
        self.paused_at.get_or_insert(since);
    }

    fn resume(&mut self, now: Instant) {
        if let (Some(since), Some(epoch)) = (self.paused_at.take(), &mut self.epoch) {
            epoch.start += now - since;
        }
    }
}

#[cfg(test)]
mod tests;
