//! How the application tells the driver that there is something to do.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::connection::Shared;
use crate::wakers::register_one;

/// Connections that the application changed, and the sleeping driver.
#[derive(Default)]
pub(crate) struct Signal(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    changed: Vec<Arc<Shared>>,
    /// Something other than a connection changed.
    news: bool,
    driver: Option<Waker>,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues `connection`; wakes the driver unless it was woken for another already.
    pub(crate) fn push(&self, connection: Arc<Shared>) {
        let mut inner = self.lock();
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

    /// Moves the changed connections to `queue`.
    pub(super) fn take(&self, queue: &mut VecDeque<Arc<Shared>>) {
        queue.extend(self.lock().changed.drain(..));
    }

    /// Has the driver woken by the next change. False if something changed before: look again.
    pub(super) fn sleep(&self, driver: &Waker) -> bool {
        let mut inner = self.lock();
        if std::mem::take(&mut inner.news) || !inner.changed.is_empty() {
            return false;
        }
        register_one(&mut inner.driver, driver);
        true
    }
}
