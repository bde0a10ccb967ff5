//! Constant delay.

use std::time::Duration;

use crate::exit_queue::ExitQueue;
use crate::{Exit, Link, Packet, Time};

/// A delay line: every packet leaves a constant time after its arrival.
///
/// Packets in transit occupy no queue: the line has unlimited capacity, so a longer delay needs no
/// larger buffer in front of it.
pub struct Delay<B> {
    delay: Duration,
    out: ExitQueue<B>,
}

impl<B> Delay<B> {
    /// A line with one-way delay `delay`.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            out: ExitQueue::new(),
        }
    }
}

impl<B: Send> Link<B> for Delay<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.out.push(Exit::arrived(now + self.delay, packet));
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.out.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.out.next_event()
    }
}
