//! Probe timeouts and persistent congestion (RFC 9002, sections 6.2 and 7.6).

use std::time::Duration;

use super::GRANULARITY;
use crate::samples::RttView;

/// Number of probe timeouts without an acknowledgment that establish persistent congestion (RFC
/// 9002, section 7.6.1).
pub const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;

/// Maximum number of doublings: 2^16 times the shortest timeout is more than a minute.
const MAX_BACKOFF: u32 = 16;

/// The probe timeout without backoff and without the peer's `max_ack_delay`, which is added for application data.
pub fn period(rtt: &RttView) -> Duration {
    rtt.smoothed + (rtt.variance * 4).max(GRANULARITY)
}

/// The timeout after `count` consecutive timeouts of `period`.
pub fn backoff(period: Duration, count: u32) -> Duration {
    period.saturating_mul(1 << count.min(MAX_BACKOFF))
}

/// The persistent congestion duration for a probe timeout of `period`.
pub fn persistent_congestion(period: Duration) -> Duration {
    period.saturating_mul(PERSISTENT_CONGESTION_THRESHOLD)
}

#[cfg(test)]
mod tests;
