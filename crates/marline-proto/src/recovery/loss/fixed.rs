//! Thresholds that never change.

use std::time::Duration;

use super::LossDetector;
use crate::recovery::GRANULARITY;
use crate::samples::{RttView, scaled};

/// When a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Packet numbers behind the largest acknowledged one; `None` if only time decides.
    pub packets: Option<u64>,
    /// What time to wait beyond a round trip, as a part of it.
    pub patience: f64,
    /// Time to wait at least.
    pub granularity: Duration,
}

impl Thresholds {
    /// Three packets, or nine eighths of a round trip (RFC 9002, section 6.1).
    pub const RFC9002: Self = Self {
        packets: Some(3),
        patience: 0.125,
        granularity: GRANULARITY,
    };

    /// Time since sending after which a packet is lost: the larger of the newest and the smoothed
    /// round-trip time, and the patience on top.
    pub fn time(&self, rtt: &RttView) -> Duration {
        let rtt = rtt.latest.max(rtt.smoothed);
        rtt.saturating_add(scaled(rtt, self.patience))
            .max(self.granularity)
    }
}

/// Loss detection with fixed thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed {
    thresholds: Thresholds,
    name: &'static str,
}

impl Fixed {
    /// `thresholds` under a name of their own.
    pub const fn new(name: &'static str, thresholds: Thresholds) -> Self {
        Self { thresholds, name }
    }

    /// As RFC 9002, section 6.1 recommends.
    pub const fn rfc9002() -> Self {
        Self::new("rfc9002", Thresholds::RFC9002)
    }

    /// As gQUIC had it: time alone decides, an eighth of a round trip beyond it.
    pub const fn gquic() -> Self {
        Self::new(
            "gquic",
            Thresholds {
                packets: None,
                ..Thresholds::RFC9002
            },
        )
    }

    /// For links that hold packets back and reorder them: time alone decides, half a round trip
    /// beyond it.
    pub const fn patient() -> Self {
        Self::new(
            "patient",
            Thresholds {
                packets: None,
                patience: 0.5,
                ..Thresholds::RFC9002
            },
        )
    }
}

impl LossDetector for Fixed {
    fn time_threshold(&self, rtt: &RttView) -> Duration {
        self.thresholds.time(rtt)
    }

    fn packet_threshold(&self) -> Option<u64> {
        self.thresholds.packets
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
