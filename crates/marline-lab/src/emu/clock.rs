//! The clock of the emulator: real time as the link models count it.

use std::time::{Duration, Instant};

use marline_link::Time;

/// A real-time clock that reads [`Time::ZERO`] when it is started.
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

    /// How long until `at`; zero if it has passed.
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
