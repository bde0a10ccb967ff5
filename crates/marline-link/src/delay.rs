//! The time a signal takes.

use std::time::Duration;

use crate::exit_queue::Out;
use crate::{Exit, Link, Packet, Time};

/// A delay line: every packet leaves a constant time after it came.
///
/// What is under way is not in any queue: the line holds as much as it is given, so a long line needs
/// no larger buffer in front of it.
pub struct Delay<B> {
    delay: Duration,
    out: Out<B>,
}

impl<B> Delay<B> {
    /// A line that takes `delay` one way.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            out: Out::new(),
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
