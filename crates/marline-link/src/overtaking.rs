//! A delay line that some packets bypass.

use std::time::Duration;

use crate::correlated::CorrelatedEvents;
use crate::exit_queue::ExitQueue;
use crate::{Exit, Link, Packet, Seed, Time};

/// A delay line that a share of the packets bypasses, ahead of those in transit: netem's
/// `delay D reorder P CORRELATION`.
pub struct Overtaking<B> {
    delay: Duration,
    passes: CorrelatedEvents,
    line: ExitQueue<B>,
    ahead: ExitQueue<B>,
}

impl<B> Overtaking<B> {
    /// A line with one-way delay `delay`, bypassed with probability `share`, with draws correlated by
    /// `correlation` (both from 0 to 1). As in netem, a correlation makes bypassing less frequent than `share`.
    pub fn new(delay: Duration, share: f64, correlation: f64, seed: Seed) -> Self {
        Self {
            delay,
            passes: CorrelatedEvents::new(share, correlation, seed),
            line: ExitQueue::new(),
            ahead: ExitQueue::new(),
        }
    }
}

impl<B: Send> Link<B> for Overtaking<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        if self.passes.happens() {
            self.ahead.push(Exit::arrived(now, packet));
        } else {
            self.line.push(Exit::arrived(now + self.delay, packet));
        }
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        let first = match (self.ahead.next_event(), self.line.next_event()) {
            (Some(ahead), Some(line)) if line < ahead => &mut self.line,
            (None, _) => &mut self.line,
            _ => &mut self.ahead,
        };
        first.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        let queues = [self.ahead.next_event(), self.line.next_event()];
        queues.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
