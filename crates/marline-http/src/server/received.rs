//! Content of requests that has arrived on a connection and is unread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::budget::Grant;
use super::resources::Origin;

/// The part of such content that a connection holds, in the budget of its server: up to its windows, although no application reads
/// any.
#[derive(Debug)]
pub(super) struct Received {
    origin: Origin,
    grant: Option<Grant>,
}

impl Received {
    /// A connection that holds nothing; `origin` has its account.
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            grant: None,
        }
    }

    /// Sets the bytes that the connection holds. Returns whether there is budget for them.
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        if bytes == 0 {
            self.grant = None;
            return true;
        }
        if self.grant.is_none() {
            self.grant = self.origin.try_take(bytes);
        }
        let Some(grant) = &mut self.grant else {
            return false;
        };
        grant.grow(&self.origin.account(), bytes);
        grant.shrink(bytes);
        grant.bytes() >= bytes
    }
}

/// The contents of a connection's requests that are not read to their ends. Clones are the same ones.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenContents(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    opened: Notify,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    /// Upper bound of bytes that have arrived unread.
    unread: usize,
    /// The account for these, if each arrival is reported.
    received: Option<Received>,
}

/// Counts the content of one request while it is open.
#[derive(Debug)]
pub(super) struct OpenContent(OpenContents);

impl State {
    fn set_unread(&mut self, bytes: usize) -> bool {
        self.unread = bytes;
        let received = self.received.as_mut();
        received.is_none_or(|received| received.set(bytes))
    }
}

impl OpenContents {
    /// Contents whose arrival is [reported](Self::on_arrival), and which are charged to `received`.
    pub(super) fn charged_to(received: Received) -> Self {
        let contents = Self::default();
        contents.state().received = Some(received);
        contents
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more as open until the result is dropped.
    pub(super) fn open(&self) -> OpenContent {
        self.state().open += 1;
        self.0.opened.notify_one();
        OpenContent(self.clone())
    }

    /// Waits until one is open. Only one task waits.
    pub(super) async fn opened(&self) {
        while self.is_empty() {
            self.0.opened.notified().await;
        }
    }

    /// Whether none is open.
    pub(super) fn is_empty(&self) -> bool {
        self.state().open == 0
    }

    /// `bytes` have arrived on a connection that holds `window` bytes at most. Returns whether there is budget for the unread ones.
    pub(super) fn on_arrival(&self, bytes: usize, window: usize) -> bool {
        let mut state = self.state();
        // Of content that was dropped, it is not known how much was read.
        let before = if state.open == 0 { 0 } else { state.unread };
        state.set_unread((before + bytes).min(window))
    }
}

impl OpenContent {
    /// `bytes` of it were read.
    pub(super) fn on_read(&self, bytes: usize) {
        let mut state = self.0.state();
        let unread = state.unread.saturating_sub(bytes);
        state.set_unread(unread);
    }
}

impl Drop for OpenContent {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        if state.open == 0 {
            state.set_unread(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_or_dropped_is_unread_no_longer() {
        let contents = OpenContents::default();
        let unread = |arrived| {
            assert!(contents.on_arrival(arrived, 1000));
            contents.state().unread
        };
        assert_eq!(unread(70), 70);
        assert_eq!(unread(30), 30);
        let [first, second] = [(); 2].map(|()| contents.open());
        assert_eq!(unread(70), 100);
        first.on_read(60);
        assert_eq!(unread(50), 90);
        assert_eq!(unread(5000), 1000);
        drop(first);
        assert_eq!(unread(0), 1000);
        drop(second);
        assert!(contents.is_empty());
        assert_eq!(unread(0), 0);
    }
}
