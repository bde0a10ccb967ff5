//! Queueing disciplines.

mod cake;
mod codel;
mod drop_tail;
mod dual_pi2;
mod fifo;
mod fq_codel;
mod red;
mod step_marker;

pub use cake::{Cake, CakeConfig, Isolation};
pub use codel::{Codel, CodelConfig};
pub use drop_tail::{DropTail, Limit};
pub use dual_pi2::{DualPi2, DualPi2Config};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use red::{Red, RedConfig};
pub use step_marker::{Stamped, StepMarker};

use fifo::{Fifo, Queued};

use std::collections::VecDeque;

use crate::{Exit, Packet, Time};

/// The queue of a link whose transmitter is busy.
///
/// A queue that drops a packet appends it to `exits` at that time, with
/// [`QueueFull`](crate::DropReason::QueueFull) or
/// [`QueueManagement`](crate::DropReason::QueueManagement). Times never decrease.
pub trait Queue<B>: Send {
    /// Enqueues a packet, or drops it.
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>);

    /// Dequeues the next packet; `None` if the queue is empty.
    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>>;

    /// Handles a packet that arrives while the transmitter is idle and the queue empty: it is
    /// transmitted without queueing, and the queue's limit does not apply.
    fn pass(
        &mut self,
        now: Time,
        packet: Packet<B>,
        exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        self.enqueue(now, packet, exits);
        self.dequeue(now, exits)
    }

    /// Queued bytes.
    fn bytes(&self) -> u64;

    /// Queued packets.
    fn len(&self) -> usize;

    /// Whether the queue is empty.
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
