//! Tasks that wait for one thing.

use std::task::Waker;

/// The tasks that wait for something, each listed once however often it polls.
///
/// All are woken together, and those that get nothing wait again. If only one were woken and it had
/// stopped waiting in the meantime, the others would not be woken.
#[derive(Debug, Default)]
pub(crate) struct WakerList(Vec<Waker>);

impl WakerList {
    pub(crate) fn register(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    /// Moves all to `woken`, whose owner wakes them when no lock is held.
    pub(crate) fn take(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.0);
    }
}

/// Registers the one task that waits for something; the last to register is woken.
pub(crate) fn register_one(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(known) => known.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}
