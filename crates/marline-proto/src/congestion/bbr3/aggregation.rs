//! The excess of bytes acknowledged together over the expected ones (section 5.5.9).

use std::time::Duration;

use crate::Instant;
use crate::congestion::max_filter::MaxFilter;

/// Rounds over which the maximum excess is taken (`BBR.ExtraAckedFilterLen`). Linux keeps two windows of 5 rounds,
/// and bounds the excess to the delivery of 100 ms; the draft bounds it by the window.
const ROUNDS: u64 = 10;

/// Rounds in startup, where the bandwidth still grows.
const STARTUP_ROUNDS: u64 = 1;

/// The bytes acknowledged in excess of the bandwidth, because acknowledgments or packets are sent in bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraAcked {
    since: Instant,
    /// Bytes acknowledged since.
    acked: u64,
    in_startup: MaxFilter,
    afterwards: MaxFilter,
    is_startup: bool,
}

impl Default for ExtraAcked {
    fn default() -> Self {
        Self {
            since: Instant::EPOCH,
            acked: 0,
            in_startup: MaxFilter::new(STARTUP_ROUNDS),
            afterwards: MaxFilter::new(ROUNDS),
            is_startup: true,
        }
    }
}

/// An acknowledgment, and the model that gives the expected bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckedBurst {
    /// Bytes acknowledged.
    pub(super) bytes: u64,
    /// The bandwidth, in bytes per second.
    pub(super) bandwidth: u64,
    /// The present round.
    pub(super) round: u64,
    /// Upper bound of the excess, in bytes.
    pub(super) window: u64,
    /// Whether startup still searches for the bandwidth.
    pub(super) is_startup: bool,
}

impl ExtraAcked {
    /// The excess in bytes.
    pub(super) fn get(&self) -> u64 {
        match self.is_startup {
            true => self.in_startup.get(),
            false => self.afterwards.get(),
        }
    }

    /// The flow was idle: no bytes were expected.
    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
        self.acked = 0;
    }

    pub(super) fn update(&mut self, now: Instant, burst: &AckedBurst) {
        let mut expected = expected(burst.bandwidth, now - self.since);
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(burst.bytes);
        let excess = self.acked.saturating_sub(expected).min(burst.window);
        self.is_startup = burst.is_startup;
        self.in_startup.update(burst.round, excess);
        self.afterwards.update(burst.round, excess);
    }
}

fn expected(bandwidth: u64, elapsed: Duration) -> u64 {
    (bandwidth as f64 * elapsed.as_secs_f64()) as u64
}
