//! Linux's `timerfd` in tokio's reactor: as exact as the kernel's high-resolution timers.
//!
//! The descriptor is never read. The reactor is edge triggered, so every expiry is reported, and
//! setting the timer anew clears earlier expiries; a stale report is recognised by comparing the clock with
//! the deadline.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Duration;

use marline_proto::Instant;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::runtime::Timer;
use crate::runtime::tokio::monotonic_now;

const ZERO: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

pub(super) struct TimerFd {
    fd: AsyncFd<OwnedFd>,
    epoch: std::time::Instant,
    deadline: Option<Instant>,
}

impl TimerFd {
    pub(super) fn new(epoch: std::time::Instant) -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        #[expect(
            deprecated,
            reason = "sound for an `OwnedFd`; the constructor that replaces it is unsafe for any type"
        )]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self {
            fd,
            epoch,
            deadline: None,
        })
    }

    fn now(&self) -> Instant {
        Instant::EPOCH + monotonic_now().duration_since(self.epoch)
    }
}

impl Timer for TimerFd {
    fn set(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
        // Zero would disarm the timer.
        let wait = (deadline - self.now()).max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let armed = timerfd_settime(
            &self.fd,
            TimerfdTimerFlags::empty(),
            &Itimerspec {
                it_interval: ZERO,
                it_value: value,
            },
        );
        debug_assert!(armed.is_ok(), "a valid time on an open timer: {armed:?}");
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        loop {
            if self.now() >= deadline {
                self.deadline = None;
                return Poll::Ready(());
            }
            match self.fd.poll_read_ready(cx) {
                Poll::Ready(Ok(mut stale)) => stale.clear_ready(),
                // The reactor has ended, and ends this task.
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}
