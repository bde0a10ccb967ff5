//! Runs that do not complete.

use std::fmt;

use marline::Instant;

/// A run that does not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stall} at {:?}; waiting: {}", .at.saturating_since(Instant::EPOCH), .waiting.join(", "))]
pub struct Stalled {
    /// Reason.
    pub stall: Stall,
    /// Time of detection.
    pub at: Instant,
    /// Waiting tasks and sockets, as text.
    pub waiting: Vec<String>,
}

/// The reason why a run does not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// No task can run, no packet is in flight and no timer is set.
    NoMoreEvents,
    /// The run did not complete within its limit of virtual time.
    TimeLimit,
    /// Tasks wake each other endlessly without advancing the clock.
    Spinning,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMoreEvents => "no task can run and no event is due",
            Self::TimeLimit => "the time limit was reached",
            Self::Spinning => "tasks wake each other endlessly",
        })
    }
}
