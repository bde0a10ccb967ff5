//! Packets that left the medium, not popped yet.

use std::collections::VecDeque;

use crate::{Carried, Time};

/// Arrived packets and dropped packets. All arrivals are delayed by the same time, so each kind is in
/// time order.
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

    /// Adds a packet, which must not be earlier than those of its kind before it.
    pub(super) fn push(&mut self, carried: Carried<B>) {
        if carried.exit.dropped.is_none() {
            self.arrived.push_back(carried);
        } else {
            self.dropped.push_back(carried);
        }
    }

    /// Time at which the first packet is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        let at = |queue: &VecDeque<Carried<B>>| Some(queue.front()?.exit.at);
        [at(&self.arrived), at(&self.dropped)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Removes the first packet, if it is due by `now`.
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
