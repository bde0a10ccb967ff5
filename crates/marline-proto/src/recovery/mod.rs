//! What an acknowledgment says about the path (RFC 9002): round-trip times, losses, probe timeouts
//! and the delivery rate.

mod delivery_rate;
pub mod loss;
pub mod pto;
mod rtt;

pub use delivery_rate::DeliveryRate;
pub use loss::LossDetector;
pub use rtt::RttEstimator;

use std::time::Duration;

/// Timers are not finer than this (RFC 9002, section 6.1.2).
pub const GRANULARITY: Duration = Duration::from_millis(1);
