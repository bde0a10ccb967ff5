//! The timer of the finest resolution that the system has.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod timer_fd;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use marline_proto::Instant;
use tokio::time::Sleep;

use crate::runtime::Timer;

/// A timer whose deadlines count from `epoch`.
pub(super) fn new(epoch: std::time::Instant) -> Box<dyn Timer> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Ok(timer) = timer_fd::TimerFd::new(epoch) {
        return Box::new(timer);
    }
    Box::new(SleepTimer::new(epoch))
}

/// Tokio's own timer, which has a resolution of a millisecond.
struct SleepTimer {
    epoch: tokio::time::Instant,
    sleep: Pin<Box<Sleep>>,
    set: bool,
}

impl SleepTimer {
    fn new(epoch: std::time::Instant) -> Self {
        let epoch = tokio::time::Instant::from_std(epoch);
        Self {
            epoch,
            sleep: Box::pin(tokio::time::sleep_until(epoch)),
            set: false,
        }
    }
}

impl Timer for SleepTimer {
    fn set(&mut self, deadline: Instant) {
        let deadline = self.epoch + Duration::from_nanos(deadline.as_nanos());
        self.sleep.as_mut().reset(deadline);
        self.set = true;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.set {
            return Poll::Pending;
        }
        ready!(self.sleep.as_mut().poll(cx));
        self.set = false;
        Poll::Ready(())
    }
}
