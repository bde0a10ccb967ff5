//! The one place of this crate that reads clocks.

use std::time::{Instant, SystemTime};

/// The present moment, for durations.
#[expect(
    clippy::disallowed_methods,
    reason = "this floor is above the core: it logs and measures real time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The present date.
#[expect(
    clippy::disallowed_methods,
    reason = "this floor is above the core: it logs and measures real time"
)]
pub(crate) fn unix_time() -> SystemTime {
    SystemTime::now()
}
