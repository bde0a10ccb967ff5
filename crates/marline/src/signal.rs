//! The signal by which calls of the application wake the driver.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::wakers::register_one;

/// The connections (`T`) that the application changed, and the waker of the sleeping driver.
pub(crate) struct Signal<T>(Mutex<Inner<T>>);

struct Inner<T> {
    changed: Vec<T>,
    /// Something other than a connection changed.
    other_change: bool,
    driver: Option<Waker>,
    closed: bool,
}

impl<T> Default for Signal<T> {
    fn default() -> Self {
        Self(Mutex::new(Inner {
            changed: Vec::new(),
            other_change: false,
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
        inner.other_change = true;
        let driver = inner.driver.take();
        drop(inner);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// The driver has ended: drops the queue and accepts no more connections. A connection holds a
    /// reference to its signal, so a queued one would keep both alive.
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

    /// Registers the driver to be woken by the next change. False if something has changed already: the
    /// driver must not sleep.
    pub(crate) fn sleep(&self, driver: &Waker) -> bool {
        let mut inner = self.lock();
        if std::mem::take(&mut inner.other_change) || !inner.changed.is_empty() {
            return false;
        }
        register_one(&mut inner.driver, driver);
        true
    }
}
