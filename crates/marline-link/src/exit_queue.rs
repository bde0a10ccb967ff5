//! A queue of exits.

use std::collections::VecDeque;

use crate::{Exit, Time};

/// Exits that are not due yet, in time order.
pub(crate) struct ExitQueue<B> {
    exits: VecDeque<Exit<B>>,
}

impl<B> ExitQueue<B> {
    pub(crate) const fn new() -> Self {
        Self {
            exits: VecDeque::new(),
        }
    }

    /// Adds an exit, which must not be earlier than those in the queue.
    pub(crate) fn push(&mut self, exit: Exit<B>) {
        debug_assert!(self.exits.back().is_none_or(|last| last.at <= exit.at));
        self.exits.push_back(exit);
    }

    /// The first exit, if it is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        let due = self.exits.front()?.at <= now;
        due.then(|| self.exits.pop_front())?
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        self.exits.front().map(|exit| exit.at)
    }
}
