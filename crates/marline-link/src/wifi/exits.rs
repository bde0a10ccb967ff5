//! What left the medium and was not fetched.

use std::collections::VecDeque;

use crate::{Carried, Time};

/// Packets that arrived and packets that were dropped. Those that arrive are delayed and all alike, so each kind is in
/// the order of its times.
#[derive(Debug)]
pub(super) struct Exits<B> {
    arrived: VecDeque<Carried<B>>,
    dropped: VecDeque<Carried<B>>,
}

impl<B> Exits<B> {
    pub(super) const fn new() -> Self {
        Self {
            arrived: VecDeque::new(),
            dropped: VecDeque::new(),
        }
    }

    /// Not earlier than those of its kind before it.
    pub(super) fn push(&mut self, carried: Carried<B>) {
        if carried.exit.dropped.is_none() {
            self.arrived.push_back(carried);
        } else {
            self.dropped.push_back(carried);
        }
    }

    /// When the first is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        let at = |queue: &VecDeque<Carried<B>>| Some(queue.front()?.exit.at);
        [at(&self.arrived), at(&self.dropped)]
            .into_iter()
            .flatten()
            .min()
    }

    /// The first, if it is due by `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<Carried<B>> {
        let first = self.next_at().filter(|&at| at <= now)?;
        if self
            .arrived
            .front()
            .is_some_and(|arrived| arrived.exit.at == first)
        {
            self.arrived.pop_front()
        } else {
            self.dropped.pop_front()
        }
    }
}
