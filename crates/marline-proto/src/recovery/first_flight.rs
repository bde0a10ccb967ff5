//! The packets that leave within the initial window's worth of bytes.

use crate::samples::RttView;
use crate::time::Instant;

/// The window that a path begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InitialWindowChoice {
    /// In bytes.
    pub(crate) bytes: u64,
    /// Without anything learnt from earlier connections, in bytes.
    pub(crate) default: u64,
}

impl InitialWindowChoice {
    pub(super) fn is_learnt(&self) -> bool {
        self.bytes > self.default
    }
}

/// What became of the initial window's worth of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstFlight {
    window: InitialWindowChoice,
    /// Bytes sent so far, until the window is used up.
    sent: u64,
    /// When the last of it left.
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

    /// The window turns out to be another one while its packets leave.
    pub(super) fn set_window(&mut self, bytes: u64) {
        self.window.bytes = bytes;
    }

    /// Whether any of it was lost, or marked by the network.
    pub(super) fn had_congestion(&self) -> bool {
        self.had_congestion
    }

    fn is_leaving(&self) -> bool {
        self.sent < self.window.bytes
    }

    /// A packet that counts as in flight left.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.is_leaving() {
            self.sent = self.sent.saturating_add(bytes);
            self.until = now;
        }
    }

    /// A packet sent at `sent_at` was lost or marked.
    pub(super) fn on_congestion(&mut self, sent_at: Instant) {
        self.had_congestion |= sent_at <= self.until;
    }

    /// The pacing rate while a learnt window leaves, in bytes per second: it takes a round trip, or as much
    /// of it does as the congestion `window` has kept since.
    pub(super) fn pacing_rate(&self, rtt: &RttView, window: u64) -> Option<u64> {
        let spreads = self.window.is_learnt() && self.is_leaving();
        let bytes = self.window.bytes.min(window);
        let nanos = u64::try_from(rtt.smoothed.as_nanos()).unwrap_or(u64::MAX);
        spreads.then(|| (bytes.saturating_mul(1_000_000_000) / nanos.max(1)).max(1))
    }
}
