//! The order of objects whose contents follow each other.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use tokio::sync::watch;

use crate::client::ClientError;

/// Gives out turns, one after another.
#[derive(Default)]
pub(super) struct Turns {
    given: std::cell::Cell<usize>,
    now: Arc<watch::Sender<Now>>,
}

/// The current turn.
#[derive(Default)]
struct Now {
    number: usize,
    /// Later ones that have ended.
    ended: BTreeSet<usize>,
    /// Whether the contents can no longer be written.
    is_over: bool,
}

/// A place in the order. The next begins when it [ends](Self::end) or is dropped.
pub(super) struct Turn {
    number: usize,
    now: Arc<watch::Sender<Now>>,
    known: watch::Receiver<Now>,
}

impl Turns {
    pub(super) fn next(&self) -> Turn {
        let number = self.given.replace(self.given.get() + 1);
        Turn {
            number,
            now: Arc::clone(&self.now),
            known: self.now.subscribe(),
        }
    }
}

impl Turn {
    /// Waits until all before have ended.
    ///
    /// # Errors
    /// One of them could not be written.
    pub(super) async fn wait(&mut self) -> Result<(), ClientError> {
        let number = self.number;
        let now = self
            .known
            .wait_for(|now| now.is_over || now.number >= number);
        // The sender belongs to this turn.
        match now.await.is_ok_and(|now| now.is_over) {
            true => Err(ClientError::Output(io::ErrorKind::BrokenPipe.into())),
            false => Ok(()),
        }
    }

    /// The object is complete, or has failed by `error`.
    pub(super) fn end(self, error: Option<&ClientError>) {
        if matches!(error, Some(ClientError::Output(_))) {
            self.now.send_modify(|now| now.is_over = true);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.now.send_modify(|now| {
            now.ended.insert(self.number);
            while now.ended.remove(&now.number) {
                now.number += 1;
            }
        });
    }
}
