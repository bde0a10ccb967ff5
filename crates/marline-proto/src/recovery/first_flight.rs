//! The packets sent within the first initial window of bytes.

use crate::samples::RttView;
use crate::time::Instant;

/// The initial window of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InitialWindowChoice {
    /// The window, in bytes.
    pub(crate) bytes: u64,
    /// The window without earlier connections, in bytes.
    pub(crate) default: u64,
}

impl InitialWindowChoice {
    pub(super) fn is_learnt(&self) -> bool {
        self.bytes > self.default
    }
}

/// The outcome of the first initial window of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstFlight {
    window: InitialWindowChoice,
    /// Bytes sent so far, until the window is used up.
    sent: u64,
    /// Send time of the last of it.
    until: Instant,
    had_congestion: bool,
}

impl FirstFlight {
    pub(super) fn new(window: InitialWindowChoice) -> Self {
        Self {
            window,
            sent: 0,
            until: Instant::EPOCH,
            had_congestion: false,
        }
    }

    pub(super) fn window(&self) -> InitialWindowChoice {
        self.window
    }

    /// Changes the window while its packets are being sent.
    pub(super) fn set_window(&mut self, bytes: u64) {
        self.window.bytes = bytes;
    }

    /// Whether any of its packets was lost or CE-marked.
    pub(super) fn had_congestion(&self) -> bool {
        self.had_congestion
    }

    fn is_leaving(&self) -> bool {
        self.sent < self.window.bytes
    }

    /// Records a sent packet that counts as in flight.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.is_leaving() {
            self.sent = self.sent.saturating_add(bytes);
            self.until = now;
        }
    }

    /// Records that a packet sent at `sent_at` was lost or CE-marked.
    pub(super) fn on_congestion(&mut self, sent_at: Instant) {
        self.had_congestion |= sent_at <= self.until;
    }

    /// Pacing rate of a learned window, in bytes per second: it is spread over a round trip, in proportion
    /// to the present congestion `window`.
    pub(super) fn pacing_rate(&self, rtt: &RttView, window: u64) -> Option<u64> {
        let spreads = self.window.is_learnt() && self.is_leaving();
        let bytes = self.window.bytes.min(window);
        let nanos = u64::try_from(rtt.smoothed.as_nanos()).unwrap_or(u64::MAX);
        spreads.then(|| (bytes.saturating_mul(1_000_000_000) / nanos.max(1)).max(1))
    }
}
