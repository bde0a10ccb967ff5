//! The delay of the path without a queue, and when to measure it (section 5.3.4.3).

use std::time::Duration;

use crate::Instant;

/// Lifetime of the smallest round-trip time (`BBR.MinRTTFilterLen`).
const LIFETIME: Duration = Duration::from_secs(10);

/// Without a smaller sample for this long, the path is drained to measure its delay (`BBR.ProbeRTTInterval`).
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// With rare measurements, a sample that exceeds the smallest by at most one part in this many confirms it, at the cost
/// of as much utilization.
const NEAR: u32 = 16;

/// Smallest such limit: hosts add as much.
const MIN_NEAR: Duration = Duration::from_millis(1);

/// Time after draining the path during which samples confirm its delay: a persistent queue of our own would be taken for
/// part of the delay.
const CONFIRMED: Duration = Duration::from_secs(25);

/// The smallest round-trip times of this round and of the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundRtt {
    this_round: Option<Duration>,
    last_round: Option<Duration>,
}

impl RoundRtt {
    /// The smallest round-trip time of the previous round.
    pub(super) fn last(&self) -> Option<Duration> {
        self.last_round
    }

    /// Processes the round-trip sample of an ACK, if any, and whether it begins a round.
    pub(super) fn update(&mut self, round_begins: bool, rtt: Option<Duration>) {
        if round_begins {
            self.last_round = self.this_round.take();
        }
        self.this_round = self.this_round.into_iter().chain(rtt).min();
    }
}

/// The smallest round-trip times of two windows: the shorter one decides when to drain the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    smallest: Option<Measured>,
    recent: Option<Measured>,
    /// When the path was drained, or was measured for the first time.
    drained: Option<Instant>,
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

    /// With rare measurements: a sample close to the smallest shows that the path's delay is unchanged.
    pub(super) fn confirm(&mut self, now: Instant, rtt: Option<Duration>) {
        let (Some(rtt), Some(smallest)) = (rtt, &mut self.smallest) else {
            return;
        };
        let drained = *self.drained.get_or_insert(now);
        let is_near = rtt <= smallest.rtt + (smallest.rtt / NEAR).max(MIN_NEAR);
        if is_near && now < drained + CONFIRMED {
            smallest.at = now;
            if let Some(recent) = &mut self.recent {
                recent.at = now;
            }
        }
    }

    /// Processes the round-trip sample of an ACK, if any. Returns whether the measurement of the last 5 seconds had
    /// expired.
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

    /// Schedules the next draining of the path an interval after this one.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        if let Some(recent) = &mut self.recent {
            recent.at = now;
        }
        self.drained = Some(now);
    }
}
