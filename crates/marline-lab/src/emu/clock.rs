//! The clock of the emulator: the system's time as the link models count it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use marline_link::Time;
use nix::sys::utsname::uname;

/// The suffix of the release of the kernel that `make kernel` builds.
const RELEASE: &str = "-marline";

/// Whether this process runs on a [kernel in virtual time](crate::kernel).
pub fn in_virtual_time() -> bool {
    static IS_VIRTUAL: OnceLock<bool> = OnceLock::new();
    *IS_VIRTUAL.get_or_init(|| {
        let name = uname();
        name.is_ok_and(|name| name.release().to_string_lossy().ends_with(RELEASE))
    })
}

/// A clock that reads [`Time::ZERO`] when it is started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { epoch: read() }
    }

    pub(super) fn now(self) -> Time {
        Time::ZERO + read().duration_since(self.epoch)
    }

    /// The time until `at`; zero if it has passed.
    pub(super) fn until(self, at: Time) -> Duration {
        at.since(self.now())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the emulator's driver is what moves links with real time"
)]
fn read() -> Instant {
    Instant::now()
}
