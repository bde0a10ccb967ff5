//! The saved congestion control parameters of a path.

use std::time::Duration;

use crate::Instant;
use crate::congestion::{MAXIMUM_WINDOW, PathModel};

/// The observed capacity of a path: the saved congestion control parameters of RFC 9959.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// A congestion window whose bytes were acknowledged, in bytes (saved_cwnd).
    pub window: u64,
    /// The minimum round-trip time of the connection that observed it (saved_rtt).
    pub rtt: Duration,
    /// When it was observed.
    pub at: Instant,
    /// The model of the rate-based controller that observed it; `None` from window-based ones.
    pub model: Option<SavedModel>,
}

/// The unit of saved random loss: one packet in this many.
const LOSS_UNITS: f64 = 1e6;

/// The saved part of a [`PathModel`], without the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedModel {
    /// The largest delivery rate, in bytes per second.
    pub bandwidth: u64,
    /// Whether the bandwidth was found to be the limit of the path.
    pub is_limit: bool,
    /// Random losses in a million packets.
    pub random_loss: u32,
}

impl SavedModel {
    /// The saved part of `model`.
    pub fn of(model: &PathModel) -> Self {
        Self {
            bandwidth: model.bandwidth,
            is_limit: model.is_limit,
            random_loss: (model.random_loss.clamp(0.0, 1.0) * LOSS_UNITS) as u32,
        }
    }

    /// The model of a path with a round-trip time of `min_rtt`.
    pub fn with_rtt(&self, min_rtt: Duration) -> PathModel {
        PathModel {
            bandwidth: self.bandwidth,
            is_limit: self.is_limit,
            min_rtt,
            random_loss: self.loss_rate(),
        }
    }

    /// The random loss rate, 0 to 1.
    pub(super) fn loss_rate(&self) -> f64 {
        f64::from(self.random_loss) / LOSS_UNITS
    }

    /// Whether its values are possible: stored bytes may be anything.
    pub fn is_sound(&self) -> bool {
        (1..=MAXIMUM_WINDOW.saturating_mul(1 << 10)).contains(&self.bandwidth)
            && f64::from(self.random_loss) <= LOSS_UNITS
    }
}
