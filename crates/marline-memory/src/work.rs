//! Synchronization between callers and the thread of a store.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue of work for the thread of a store.
#[derive(Debug)]
pub(crate) struct WorkQueue<Q> {
    state: Mutex<State<Q>>,
    /// Notified when there is work, and on stop.
    wake: Condvar,
    /// Notified when a flush is completed, or the thread ends.
    done: Condvar,
}

#[derive(Debug)]
struct State<Q> {
    queue: Q,
    /// Number of flushes requested.
    flushes_requested: u64,
    /// Number of flushes completed.
    flushes_completed: u64,
    is_stopping: bool,
    has_ended: bool,
}

/// A round of the thread's loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    flushes_requested: u64,
    /// Whether the thread has to end after this round.
    pub(crate) is_last: bool,
}

impl<Q> WorkQueue<Q> {
    pub(crate) fn new(queue: Q) -> Self {
        Self {
            state: Mutex::new(State {
                queue,
                flushes_requested: 0,
                flushes_completed: 0,
                is_stopping: false,
                has_ended: false,
            }),
            wake: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Changes the queue and notifies the thread.
    pub(crate) fn put<T>(&self, change: impl FnOnce(&mut Q) -> T) -> T {
        let result = self.with(change);
        self.wake.notify_one();
        result
    }

    /// Accesses the queue without notifying the thread.
    pub(crate) fn with<T>(&self, access: impl FnOnce(&mut Q) -> T) -> T {
        access(&mut self.lock().queue)
    }

    /// Waits until all work that is queued now is done, at most for `timeout`. Returns whether it is.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let mut state = self.lock();
        state.flushes_requested += 1;
        let number = state.flushes_requested;
        self.wake.notify_one();
        let state = self.wait_for(state, timeout, |state| state.flushes_completed >= number);
        state.flushes_completed >= number
    }

    /// Requests the last round of the thread, and waits for its end, at most for `timeout`.
    pub(crate) fn stop(&self, timeout: Duration) {
        let mut state = self.lock();
        state.is_stopping = true;
        self.wake.notify_one();
        drop(self.wait_for(state, timeout, |_| false));
    }

    fn wait_for<'a>(
        &self,
        state: MutexGuard<'a, State<Q>>,
        timeout: Duration,
        is_done: impl Fn(&State<Q>) -> bool,
    ) -> MutexGuard<'a, State<Q>> {
        let waited = self
            .done
            .wait_timeout_while(state, timeout, |state| !(is_done(state) || state.has_ended));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Called by the thread: waits until there is work, a flush or a stop.
    pub(crate) fn wait(&self, is_idle: impl Fn(&Q) -> bool) {
        let idle = |state: &mut State<Q>| {
            is_idle(&state.queue)
                && state.flushes_requested == state.flushes_completed
                && !state.is_stopping
        };
        drop(self.wake.wait_while(self.lock(), idle));
    }

    /// Called by the thread: waits for more work for `time`, or until a flush or stop.
    pub(crate) fn wait_for_more(&self, time: Duration) {
        let wait = |state: &mut State<Q>| {
            state.flushes_requested == state.flushes_completed && !state.is_stopping
        };
        drop(self.wake.wait_timeout_while(self.lock(), time, wait));
    }

    /// Called by the thread after an error: waits for `time`, or until a stop.
    pub(crate) fn back_off(&self, time: Duration) {
        let wait = |state: &mut State<Q>| !state.is_stopping;
        drop(self.wake.wait_timeout_while(self.lock(), time, wait));
    }

    /// Called by the thread: begins a round.
    pub(crate) fn begin_round(&self) -> Round {
        let state = self.lock();
        Round {
            flushes_requested: state.flushes_requested,
            is_last: state.is_stopping,
        }
    }

    /// Called by the thread: all work that was queued at the beginning of `round` is done.
    pub(crate) fn finish(&self, round: Round) {
        let mut state = self.lock();
        state.flushes_completed = round.flushes_requested;
        self.done.notify_all();
    }

    /// A guard that records the end of the thread when it is dropped, also by a panic.
    pub(crate) fn thread_guard(&self) -> ThreadGuard<'_, Q> {
        ThreadGuard(self)
    }

    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the end of the thread on drop.
#[derive(Debug)]
pub(crate) struct ThreadGuard<'a, Q>(&'a WorkQueue<Q>);

impl<Q> Drop for ThreadGuard<'_, Q> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.done.notify_all();
    }
}
