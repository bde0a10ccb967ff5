//! The clock of the emulator: the system's time as the link models count it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use marline_link::Time;
use nix::sys::utsname::uname;

/// How the release of the kernel ends that `make kernel` builds.
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
#[derive(Debug)]
pub(super) struct Clock {
    epoch: Instant,
    /// In virtual time, what it has read since the last wait: computing takes no time there, but reading the clock is a
    /// system call, and those cost most.
    since_wait: Option<Time>,
    /// Waits since it was read.
    waits: u32,
}

/// Waits after which the clock is read in any case. A wait begins a little later than the clock says, by what others read it
/// meanwhile: that must not add up.
const MOST_WAITS: u32 = 64;

impl Clock {
    pub(super) fn start() -> Self {
        Self {
            epoch: read(),
            since_wait: in_virtual_time().then_some(Time::ZERO),
            waits: 0,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.since_wait.unwrap_or_else(|| self.elapsed())
    }

    /// To be called when the caller has waited: until a time, or until something happened.
    pub(super) fn has_waited(&mut self, until: Option<Time>) {
        if self.since_wait.is_none() {
            return;
        }
        self.waits += 1;
        self.since_wait = until.filter(|_| self.waits < MOST_WAITS);
        if self.since_wait.is_none() {
            self.since_wait = Some(self.elapsed());
            self.waits = 0;
        }
    }

    /// How long until `at`; zero if it has passed.
    pub(super) fn until(&self, at: Time) -> Duration {
        at.since(self.now())
    }

    fn elapsed(&self) -> Time {
        Time::ZERO + read().duration_since(self.epoch)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the emulator's driver is what moves links with real time"
)]
fn read() -> Instant {
    Instant::now()
}
