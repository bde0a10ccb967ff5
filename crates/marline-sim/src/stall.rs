//! Runs that do not end.

use std::fmt;

use marline::Instant;

/// A run that does not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stall} at {:?}; waiting: {}", .at.saturating_since(Instant::EPOCH), .waiting.join(", "))]
pub struct Stalled {
    /// Why it does not end.
    pub stall: Stall,
    /// When that was detected.
    pub at: Instant,
    /// The waiting tasks and sockets, as text.
    pub waiting: Vec<String>,
}

/// Why a run does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// No task can run, no packet is in flight and no timer is set.
    NoMoreEvents,
    /// It did not end within its limit of virtual time.
    TimeLimit,
    /// Tasks wake each other without end, and the clock does not advance.
    Spinning,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMoreEvents => "no task can run and no event is due",
            Self::TimeLimit => "the time limit is reached",
            Self::Spinning => "tasks wake each other without end",
        })
    }
}
