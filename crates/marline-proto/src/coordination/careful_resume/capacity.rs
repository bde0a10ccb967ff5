//! The congestion control parameters that are saved of a path.

use std::time::Duration;

use crate::Instant;

/// What a path was observed to carry: the saved congestion control parameters of RFC 9959.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// A congestion window whose bytes were acknowledged, in bytes (saved_cwnd).
    pub window: u64,
    /// The minimum round-trip time of the connection that observed it (saved_rtt).
    pub rtt: Duration,
    /// When it was observed.
    pub at: Instant,
}
