//! Queues in front of a server: what waits, what goes next, what is dropped.

mod codel;
mod drop_tail;
mod fifo;
mod fq_codel;
mod red;

pub use codel::{Codel, CodelConfig};
pub use drop_tail::{DropTail, Limit};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use red::{Red, RedConfig};

use fifo::Fifo;

use std::collections::VecDeque;

use crate::{Exit, Packet, Time};

/// Where packets wait for a server that is busy.
///
/// A queue that drops appends the packet to `exits` at that moment, with
/// [`QueueFull`](crate::DropReason::QueueFull) or
/// [`QueueManagement`](crate::DropReason::QueueManagement). Times never go back.
pub trait Queue<B>: Send {
    /// A packet has to wait.
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>);

    /// The packet whose turn it is; `None` if all that waited is gone.
    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>>;

    /// A packet finds the server free, and so nothing before it: it need not wait, and no limit of
    /// the queue may stop it.
    fn pass(
        &mut self,
        now: Time,
        packet: Packet<B>,
        exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        self.enqueue(now, packet, exits);
        self.dequeue(now, exits)
    }

    /// Bytes that wait.
    fn bytes(&self) -> u64;

    /// Packets that wait.
    fn len(&self) -> usize;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<B, Q: Queue<B> + ?Sized> Queue<B> for Box<Q> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        (**self).enqueue(now, packet, exits);
    }

    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        (**self).dequeue(now, exits)
    }

    fn pass(
        &mut self,
        now: Time,
        packet: Packet<B>,
        exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        (**self).pass(now, packet, exits)
    }

    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn len(&self) -> usize {
        (**self).len()
    }
}
