//! The model of a path that a rate-based controller measures, for coordinators to carry to another controller.

use std::time::Duration;

/// A path as a rate-based controller has measured it ([`Coordinated::model`](super::Coordinated::model)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathModel {
    /// The largest delivery rate, in bytes per second.
    pub bandwidth: u64,
    /// Whether `bandwidth` was found to be the limit of the path. Otherwise it is a lower bound: a short transfer ends
    /// before its controller has found the limit.
    pub is_limit: bool,
    /// The smallest round-trip time.
    pub min_rtt: Duration,
    /// The random loss rate of the path, 0 to 1; 0 for controllers that do not distinguish it.
    pub random_loss: f64,
}

impl PathModel {
    /// Bytes that the path holds without a queue: the bandwidth-delay product.
    pub fn product(&self) -> u64 {
        (self.bandwidth as f64 * self.min_rtt.as_secs_f64()) as u64
    }

    /// Whether a controller can begin from it: no value is zero that must not be, and the loss rate is at most 1.
    pub fn is_sound(&self) -> bool {
        self.bandwidth > 0 && !self.min_rtt.is_zero() && (0.0..=1.0).contains(&self.random_loss)
    }
}
