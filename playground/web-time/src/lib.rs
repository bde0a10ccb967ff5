//! The clock of the playground, in place of the crate of this name, which asks the browser: the clock of a simulation
//! stands still at its beginning, so that certificates are valid or not wherever and whenever it runs.

use std::time::Duration;

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemTime(Duration);

impl SystemTime {
    /// 1970-01-01 UTC.
    pub const UNIX_EPOCH: Self = Self(Duration::ZERO);

    /// The date at which simulations begin: 2023-11-14 22:13:20 UTC.
    pub fn now() -> Self {
        Self(Duration::from_secs(1_700_000_000))
    }

    /// The time since `earlier`.
    ///
    /// # Errors
    /// `earlier` is later.
    pub fn duration_since(&self, earlier: Self) -> Result<Duration, SystemTimeError> {
        self.0.checked_sub(earlier.0).ok_or(SystemTimeError)
    }
}

/// A date is later than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemTimeError;
