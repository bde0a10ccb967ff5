//! How much a stream matters (RFC 9218).

use std::fmt;
use std::str::FromStr;

/// The priority of a stream (RFC 9218, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 (most urgent) to 7.
    pub urgency: u8,
    /// Whether the receiver makes use of parts, so that streams of one urgency share the path.
    pub incremental: bool,
}

impl Priority {
    /// The least urgent.
    pub const MAX_URGENCY: u8 = 7;

    /// A priority; an urgency above 7 counts as 7.
    pub const fn new(urgency: u8, incremental: bool) -> Self {
        Self {
            urgency: if urgency > Self::MAX_URGENCY {
                Self::MAX_URGENCY
            } else {
                urgency
            },
            incremental,
        }
    }
}

impl Default for Priority {
    /// Urgency 3, not incremental (RFC 9218, section 4).
    fn default() -> Self {
        Self::new(3, false)
    }
}

impl fmt::Display for Priority {
    /// As the Priority field writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u={}", self.urgency)?;
        if self.incremental {
            f.write_str(", i")?;
        }
        Ok(())
    }
}

/// The text is not a Structured Fields dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a priority: write it as `u=1, i`")]
pub struct InvalidPriority;

impl FromStr for Priority {
    type Err = InvalidPriority;

    fn from_str(_field: &str) -> Result<Self, Self::Err> {
        Err(InvalidPriority)
    }
}
