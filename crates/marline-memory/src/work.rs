//! Where callers leave work for a store's thread, and wait for it only if they say so.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Work<Q> {
    state: Mutex<State<Q>>,
    /// There is work, or an end of it.
    wake: Condvar,
    /// A flush is done, or the thread is.
    done: Condvar,
}

#[derive(Debug)]
struct State<Q> {
    queue: Q,
    /// Flushes that were asked for, and those of them that are done.
    asked: u64,
    done: u64,
    is_stopping: bool,
    has_ended: bool,
}

/// What the thread is about to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    asked: u64,
    /// It is the last.
    pub(crate) is_last: bool,
}

impl<Q> Work<Q> {
    pub(crate) fn new(queue: Q) -> Self {
        Self {
            state: Mutex::new(State {
                queue,
                asked: 0,
                done: 0,
                is_stopping: false,
                has_ended: false,
            }),
            wake: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Changes the queue; the thread hears of it.
    pub(crate) fn put<T>(&self, change: impl FnOnce(&mut Q) -> T) -> T {
        let result = self.with(change);
        self.wake.notify_one();
        result
    }

    /// Looks into the queue, or changes it, and wakes nobody.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Q) -> T) -> T {
        look(&mut self.lock().queue)
    }

    /// Waits until all that is in the queue now is done, for `most` at most. Whether it is.
    pub(crate) fn flush(&self, most: Duration) -> bool {
        let mut state = self.lock();
        state.asked += 1;
        let asked = state.asked;
        self.wake.notify_one();
        let state = self.wait_for(state, most, |state| state.done >= asked);
        state.done >= asked
    }

    /// Has the thread take its last turn, and waits for its end, for `most` at most.
    pub(crate) fn stop(&self, most: Duration) {
        let mut state = self.lock();
        state.is_stopping = true;
        self.wake.notify_one();
        drop(self.wait_for(state, most, |_| false));
    }

    fn wait_for<'a>(
        &self,
        state: MutexGuard<'a, State<Q>>,
        most: Duration,
        is_done: impl Fn(&State<Q>) -> bool,
    ) -> MutexGuard<'a, State<Q>> {
        let result = self
            .done
            .wait_timeout_while(state, most, |state| !(is_done(state) || state.has_ended));
        result.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The thread sleeps until there is something to do.
    pub(crate) fn wait(&self, is_idle: impl Fn(&Q) -> bool) {
        let idle = |state: &mut State<Q>| {
            is_idle(&state.queue) && state.asked == state.done && !state.is_stopping
        };
        drop(self.wake.wait_while(self.lock(), idle));
    }

    /// The thread lets more work come, for so long or until somebody waits for it.
    pub(crate) fn gather(&self, time: Duration) {
        let gather = |state: &mut State<Q>| state.asked == state.done && !state.is_stopping;
        drop(self.wake.wait_timeout_while(self.lock(), time, gather));
    }

    /// The thread lets things get better, for so long or until it is to end.
    pub(crate) fn rest(&self, time: Duration) {
        let rest = |state: &mut State<Q>| !state.is_stopping;
        drop(self.wake.wait_timeout_while(self.lock(), time, rest));
    }

    /// The thread begins to do what there is.
    pub(crate) fn turn(&self) -> Turn {
        let state = self.lock();
        Turn {
            asked: state.asked,
            is_last: state.is_stopping,
        }
    }

    /// The thread has done all that there was when the turn began.
    pub(crate) fn finish(&self, turn: Turn) {
        let mut state = self.lock();
        state.done = turn.asked;
        self.done.notify_all();
    }

    /// The thread is here until this is dropped, be it by a panic.
    pub(crate) fn enter(&self) -> Presence<'_, Q> {
        Presence(self)
    }

    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That the thread is alive.
#[derive(Debug)]
pub(crate) struct Presence<'a, Q>(&'a Work<Q>);

impl<Q> Drop for Presence<'_, Q> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.done.notify_all();
    }
}
