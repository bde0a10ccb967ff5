//! Probe timeouts and persistent congestion (RFC 9002, sections 6.2 and 7.6).

use std::time::Duration;

use super::GRANULARITY;
use crate::samples::RttView;

/// How many probe timeouts without an acknowledgment are persistent congestion (RFC 9002,
/// section 7.6.1).
pub const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;

/// Doublings after which the timeout stops growing: 2^16 of the shortest are more than a minute.
const MAX_BACKOFF: u32 = 16;

/// The probe timeout without the peer's delay of acknowledgments, which is added for application data, and without
/// backoff.
pub fn period(rtt: &RttView) -> Duration {
    rtt.smoothed + (rtt.variance * 4).max(GRANULARITY)
}

/// A `period` after `count` timeouts in a row.
pub fn backoff(period: Duration, count: u32) -> Duration {
    period.saturating_mul(1 << count.min(MAX_BACKOFF))
}

/// How long nothing may be acknowledged, between two lost ack-eliciting packets, before congestion
/// is persistent; `period` is the probe timeout.
pub fn persistent_congestion(period: Duration) -> Duration {
    period.saturating_mul(PERSISTENT_CONGESTION_THRESHOLD)
}

#[cfg(test)]
mod tests;
