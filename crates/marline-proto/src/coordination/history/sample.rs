//! A connection's report about its path.

use std::time::Duration;

use super::{Capacity, SavedModel};
use crate::Instant;
use crate::congestion::MAXIMUM_WINDOW;

/// A connection's observations of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSample {
    /// The reason for the report.
    pub event: SampleEvent,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The initial window, in bytes.
    pub initial_window: u64,
    /// The minimum round-trip time; zero if none was measured.
    pub rtt: Duration,
    /// Bytes acknowledged on the path.
    pub delivered: u64,
    /// Whether the connection was app-limited all the time: the window never held data back.
    pub app_limited: bool,
    /// Whether any packet of the first flight was lost, or marked with ECN-CE.
    pub lost_at_first: bool,
    /// The model of a rate-based controller, once it has one.
    pub model: Option<SavedModel>,
}

impl PathSample {
    /// The capacity to save at `now`; `None` if the saved window of `known` bytes stays.
    ///
    /// Only acknowledged bytes count, since only they are known to fit. A connection that was
    /// app-limited may have left capacity unused, so it can only raise the saved window. One that lost a
    /// packet of its first flight lowers it, however little it delivered.
    pub fn capacity(&self, now: Instant, known: Option<u64>) -> Option<Capacity> {
        let window = self.window.min(MAXIMUM_WINDOW);
        let proven = window.min(self.delivered);
        let window = match known {
            Some(known) if self.lost_at_first && window < known => window,
            _ if self.delivered < self.initial_window => return None,
            Some(known) if self.app_limited && proven < known => return None,
            _ => proven,
        };
        (!self.rtt.is_zero()).then_some(Capacity {
            window,
            rtt: self.rtt,
            at: now,
            model: self.model,
        })
    }
}

/// The occasion of a connection's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleEvent {
    /// The peer resumes the session in another connection, while this one is open.
    Resumed,
    /// The connection is closed, has timed out, or leaves the path.
    Closed,
}
