//! How the application tells the driver that there is something to do.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::wakers::register_one;

/// What the application changed (connections, all `T`), and the sleeping driver.
pub(crate) struct Signal<T>(Mutex<Inner<T>>);

struct Inner<T> {
    changed: Vec<T>,
    /// Something other than a connection changed.
    news: bool,
    driver: Option<Waker>,
    closed: bool,
}

impl<T> Default for Signal<T> {
    fn default() -> Self {
        Self(Mutex::new(Inner {
            changed: Vec::new(),
            news: false,
            driver: None,
            closed: false,
        }))
    }
}

impl<T> Signal<T> {
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues `connection`; wakes the driver unless it was woken for another already.
    pub(crate) fn push(&self, connection: T) {
        let mut inner = self.lock();
        if inner.closed {
            drop(inner);
            return;
        }
        inner.changed.push(connection);
        let driver = inner.driver.take();
        drop(inner);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Wakes the driver for something else than a connection.
    pub(crate) fn wake(&self) {
        let mut inner = self.lock();
        inner.news = true;
        let driver = inner.driver.take();
        drop(inner);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// The driver is gone: what is queued is forgotten, and what comes is not queued any more. It
    /// would hold itself otherwise, for a connection knows its signal.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let (changed, driver) = (std::mem::take(&mut inner.changed), inner.driver.take());
        drop(inner);
        drop((changed, driver));
    }

    /// Moves the changed connections to `queue`.
    pub(crate) fn take(&self, queue: &mut VecDeque<T>) {
        queue.extend(self.lock().changed.drain(..));
    }

    /// Has the driver woken by the next change. False if something changed before: look again.
    pub(crate) fn sleep(&self, driver: &Waker) -> bool {
        let mut inner = self.lock();
        if std::mem::take(&mut inner.news) || !inner.changed.is_empty() {
            return false;
        }
        register_one(&mut inner.driver, driver);
        true
    }
}
