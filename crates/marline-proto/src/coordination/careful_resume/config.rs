//! What can be chosen about returning to what is remembered.

use std::time::Duration;

/// How a path returns to what is remembered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarefulResumeConfig {
    /// No window is jumped to that is larger, in bytes (max_jump); `None` leaves it at half of what is
    /// remembered.
    pub max_jump: Option<u64>,
    /// What is older is not returned to (section 4.3.1).
    pub lifetime: Duration,
    /// The part of what arrived up to which slow start goes after a retreat (section 3.5): 0.5 to 1, and
    /// the nearest of them for what is outside.
    pub beta: f64,
}

impl Default for CarefulResumeConfig {
    fn default() -> Self {
        Self {
            max_jump: None,
            lifetime: Duration::from_secs(3600),
            beta: 0.5,
        }
    }
}
