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
    /// Whether a server's clients carry what it finds, sealed in their address tokens, and it returns to
    /// what they bring. Then it need remember nothing, one client cannot spoil what is known of another, and
    /// those behind one address do not share. The server's `address_tokens` must be on.
    pub tokens: bool,
}

impl Default for CarefulResumeConfig {
    fn default() -> Self {
        Self {
            max_jump: None,
            lifetime: Duration::from_secs(3600),
            beta: 0.5,
            tokens: false,
        }
    }
}
