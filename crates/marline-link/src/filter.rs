//! Links without delay that drop or change packets.

use crate::exit_queue::ExitQueue;
use crate::{DropReason, Exit, Link, Packet, Time};

/// Drops or changes packets at their arrival.
pub trait Filter: Send {
    /// Inspects `packet`, which it may change. Returns the reason if the packet is dropped.
    fn inspect<B>(&mut self, now: Time, packet: &mut Packet<B>) -> Option<DropReason>;
}

/// A link without delay that applies a [`Filter`] to every packet.
pub struct FilterLink<B, G> {
    filter: G,
    out: ExitQueue<B>,
}

impl<B, G> FilterLink<B, G> {
    /// A link that applies `filter`.
    pub const fn new(filter: G) -> Self {
        Self {
            filter,
            out: ExitQueue::new(),
        }
    }
}

impl<B: Send, G: Filter> Link<B> for FilterLink<B, G> {
    fn push(&mut self, now: Time, mut packet: Packet<B>) {
        let dropped = self.filter.inspect(now, &mut packet);
        self.out.push(Exit {
            at: now,
            packet,
            dropped,
        });
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.out.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.out.next_event()
    }
}
