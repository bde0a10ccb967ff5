//! The configuration of Careful Resume.

use std::time::Duration;

/// How a path returns to remembered capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarefulResumeConfig {
    /// Upper bound of the jump, in bytes (max_jump), besides half of the remembered window; `None` is no
    /// further bound.
    pub max_jump: Option<u64>,
    /// Age above which remembered capacity is not used (section 4.3.1).
    pub lifetime: Duration,
    /// Slow-start threshold after a retreat, as a part of the pipe size (section 3.5); clamped to 0.5 to 1.
    pub beta: f64,
    /// Server: whether its clients store the capacity that it measured, sealed in their address tokens, so
    /// that it returns to the capacity in the token. Then the server need not remember anything, one client
    /// cannot change what is remembered of another, and clients behind one address have separate records.
    /// The server's `address_tokens` must be on.
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
