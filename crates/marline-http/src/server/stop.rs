//! The signal that stops a server.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use slab::Slab;

/// A flag that stays set, and the tasks that wait for it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stopping: AtomicBool,
    waiting: Mutex<Slab<Waker>>,
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, Slab<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

impl Stop {
    /// Sets the flag and wakes all tasks in the order in which they are stored, so that runs in virtual time
    /// are deterministic.
    pub(super) fn stop(&self) {
        let waiting = self.0.waiting();
        self.0.stopping.store(true, Ordering::Release);
        let woken: Vec<_> = waiting.iter().map(|(_, waker)| waker.clone()).collect();
        drop(waiting);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Whether the server is stopped.
    pub(super) fn is_stopping(&self) -> bool {
        self.0.is_stopping()
    }

    /// Completes once the server is stopped.
    pub(super) fn stopped(&self) -> Stopped {
        Stopped {
            stop: self.clone(),
            registered: None,
        }
    }
}

/// See [`Stop::stopped`]. It takes the lock when it begins to wait, not at every poll.
#[derive(Debug)]
pub(crate) struct Stopped {
    stop: Stop,
    /// The key of the waker, and the waker.
    registered: Option<(usize, Waker)>,
}

impl Future for Stopped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let inner = &this.stop.0;
        if inner.is_stopping() {
            return Poll::Ready(());
        }
        if let Some((_, waker)) = &this.registered
            && waker.will_wake(cx.waker())
        {
            return Poll::Pending;
        }
        let mut waiting = inner.waiting();
        if inner.is_stopping() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let key = match this.registered.take() {
            Some((key, _)) => {
                waiting[key] = waker.clone();
                key
            }
            None => waiting.insert(waker.clone()),
        };
        this.registered = Some((key, waker));
        Poll::Pending
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some((key, _)) = self.registered {
            self.stop.0.waiting().remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_waiters_are_notified() {
        let stop = Stop::default();
        let waiting: Vec<_> = (0..3).map(|_| tokio::spawn(stop.stopped())).collect();
        tokio::task::yield_now().await;
        drop(stop.stopped());
        stop.stop();
        for task in waiting {
            task.await.unwrap();
        }
        stop.stopped().await;
        assert!(stop.0.waiting().is_empty());
    }
}
