//! The delay of the path without queue, and when to measure it (section 5.3.4.3).

use std::time::Duration;

use crate::Instant;

/// Lifetime of the smallest round-trip time (`BBR.MinRTTFilterLen`).
const LIFETIME: Duration = Duration::from_secs(10);

/// Without a smaller sample for this long, the path is drained to measure its delay (`BBR.ProbeRTTInterval`).
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The smallest round-trip times of two windows: the shorter one decides when to drain the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    smallest: Option<Measured>,
    recent: Option<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    rtt: Duration,
    at: Instant,
}

impl MinRtt {
    /// The smallest round-trip time of the last 10 seconds (`BBR.min_rtt`).
    pub(super) fn get(&self) -> Option<Duration> {
        self.smallest.map(|measured| measured.rtt)
    }

    /// Takes in what an ACK measured, if anything. Returns whether the measurement of the last 5 seconds had expired
    /// before.
    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self
            .recent
            .is_some_and(|recent| now > recent.at + PROBE_INTERVAL);
        if let Some(rtt) = rtt
            && (expired || self.recent.is_none_or(|recent| rtt < recent.rtt))
        {
            self.recent = Some(Measured { rtt, at: now });
        }
        let replaces = match (self.smallest, self.recent) {
            (Some(smallest), Some(recent)) => {
                recent.rtt < smallest.rtt || now > smallest.at + LIFETIME
            }
            _ => true,
        };
        if replaces {
            self.smallest = self.recent;
        }
        expired
    }

    /// The path was drained: the next time to do so is an interval later.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        if let Some(recent) = &mut self.recent {
            recent.at = now;
        }
    }
}
