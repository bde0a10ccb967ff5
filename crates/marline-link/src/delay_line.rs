//! Packets in transit whose delays differ.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::{Exit, Packet, Time};

/// A delay line whose packets leave at given times.
pub(crate) struct DelayLine<B> {
    /// Whether packets may overtake each other. Otherwise a late packet delays those behind it.
    reorder: bool,
    /// Packets in transit; the next to leave is at the top.
    line: BinaryHeap<Waiting<B>>,
    pushed: u64,
    /// The latest departure so far, if packets keep their order.
    last: Time,
}

impl<B> DelayLine<B> {
    pub(crate) const fn new(reorder: bool) -> Self {
        Self {
            reorder,
            line: BinaryHeap::new(),
            pushed: 0,
            last: Time::ZERO,
        }
    }

    /// Adds a packet that leaves at `at`, or after those before it.
    pub(crate) fn push(&mut self, mut at: Time, packet: Packet<B>) {
        if !self.reorder {
            at = at.max(self.last);
            self.last = at;
        }
        self.line.push(Waiting {
            at,
            order: self.pushed,
            packet,
        });
        self.pushed += 1;
    }

    /// The next packet, if it is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        let due = self.line.peek()?.at <= now;
        let next = due.then(|| self.line.pop())??;
        Some(Exit::arrived(next.at, next.packet))
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        self.line.peek().map(|next| next.at)
    }
}

/// A packet in transit. Ordered so that the earliest departure is the greatest, ties by arrival.
struct Waiting<B> {
    at: Time,
    order: u64,
    packet: Packet<B>,
}

impl<B> Ord for Waiting<B> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<B> PartialOrd for Waiting<B> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B> PartialEq for Waiting<B> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<B> Eq for Waiting<B> {}
