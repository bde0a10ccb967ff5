//! One timer of a host.

use std::sync::Arc;
use std::task::{Context, Poll};

use marline::Instant;
use marline::runtime::Timer;

use crate::state::Shared;

/// A timer of the simulation's clock.
pub(crate) struct SimTimer {
    shared: Arc<Shared>,
    number: usize,
    deadline: Option<Instant>,
}

impl SimTimer {
    /// A timer that is not set.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            number: shared.lock().timers.add(),
            shared: Arc::clone(shared),
            deadline: None,
        }
    }
}

impl Timer for SimTimer {
    fn set(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        let timers = &mut self.shared.lock().timers;
        if self.shared.now() >= deadline {
            self.deadline = None;
            timers.unset(self.number);
            return Poll::Ready(());
        }
        timers.set(self.number, deadline, cx.waker());
        Poll::Pending
    }
}

impl Drop for SimTimer {
    fn drop(&mut self) {
        let waker = self.shared.lock().timers.remove(self.number);
        // Dropping a waker may drop a task, and the task another timer: the lock is released first.
        drop(waker);
    }
}
