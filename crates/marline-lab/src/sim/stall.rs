//! Runs that will not end.

use std::fmt;

use marline::Instant;

/// A run that will not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stall} at {:?}; waiting: {}", .at.saturating_since(Instant::EPOCH), .waiting.join(", "))]
pub struct Stalled {
    /// Why it will not end.
    pub stall: Stall,
    /// When that was noticed.
    pub at: Instant,
    /// Who waits, in words.
    pub waiting: Vec<String>,
}

/// Why a run will not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// No packet is under way and no timer is set.
    NothingCanHappen,
    /// It is not done in the time it was given.
    TimeLimit,
    /// Tasks wake each other, and the clock stands still.
    Spinning,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingCanHappen => "nothing can ever happen again",
            Self::TimeLimit => "the time limit is reached",
            Self::Spinning => "tasks wake each other without end",
        })
    }
}
