//! A server that sends one packet at a time, and a queue in front of it.

use std::collections::VecDeque;

use crate::process::{RateProcess, Segment, Steady};
use crate::queue::Queue;
use crate::{Exit, Link, Packet, Time};

/// The rate, in bits per second, at which sending takes no time and the queue is always empty.
pub const UNLIMITED: u64 = u64::MAX;

/// Sends packets one after another, each as long as its bits take.
///
/// Departures are exact: the fraction of a nanosecond that rounding up takes from one packet is given
/// back to the next behind it, so that no drift builds up. A packet that is being sent is not in the
/// queue, and does not count in the queue's limit.
pub struct Rate<B> {
    /// What waits.
    queue: Box<dyn Queue<B>>,
    /// How fast.
    process: Box<dyn RateProcess>,
    /// What holds at present, while something is being sent.
    segment: Segment,
    /// Bytes that framing adds to each packet.
    overhead: u32,
    /// What is being sent.
    service: Option<Service<B>>,
    /// What left, or was dropped, and was not yet given out.
    exits: VecDeque<Exit<B>>,
}

/// A packet that is being sent.
struct Service<B> {
    /// The packet.
    packet: Packet<B>,
    /// Since when, or since when at the present rate.
    since: Time,
    /// What was left to send then, in billionths of a bit: a rate in bits per second is that many of
    /// them per nanosecond.
    left: u64,
    /// When the last bit is sent, in whole nanoseconds, if the rate stays.
    done: Time,
}

/// Billionths of a bit in a byte.
const BYTE: u64 = 8_000_000_000;

impl<B> Rate<B> {
    /// Sends at a constant rate, in bits per second: [`UNLIMITED`], or 0 for never.
    pub fn new(bits_per_second: u64, queue: Box<dyn Queue<B>>) -> Self {
        Self::varying(Box::new(Steady { bits_per_second }), queue)
    }

    /// Sends at a rate that changes, also while a packet is being sent.
    pub fn varying(process: Box<dyn RateProcess>, queue: Box<dyn Queue<B>>) -> Self {
        Self {
            queue,
            process,
            segment: Segment {
                bits_per_second: 0,
                until: Time::ZERO,
            },
            overhead: 0,
            service: None,
            exits: VecDeque::new(),
        }
    }

    /// Adds `bytes` of framing to the time that each packet takes; they do not count in the queue.
    #[must_use]
    pub const fn with_overhead(mut self, bytes: u32) -> Self {
        self.overhead = bytes;
        self
    }

    /// Begins to send `packet`; `credit` is what the server could have sent since it was free.
    fn serve(&mut self, now: Time, packet: Packet<B>, credit: u64) {
        if self.segment.until <= now {
            self.segment = self.process.at(now);
        }
        let bytes = u64::from(packet.size) + u64::from(self.overhead);
        let left = bytes.saturating_mul(BYTE).saturating_sub(credit);
        self.service = Some(Service {
            packet,
            since: now,
            left,
            done: done(now, left, self.segment.bits_per_second),
        });
    }

    /// When the packet that is being sent leaves, or its rate changes.
    fn due(&self) -> Option<Time> {
        let service = self.service.as_ref()?;
        let due = service.done.min(self.segment.until);
        (due < Time::MAX).then_some(due)
    }

    /// Does all that is due by `now`.
    fn advance(&mut self, now: Time) {
        while let Some(due) = self.due().filter(|due| *due <= now)
            && let Some(mut service) = self.service.take()
        {
            let rate = self.segment.bits_per_second;
            if service.done <= due {
                let credit = credit(service.left, rate);
                self.exits.push_back(Exit::arrived(due, service.packet));
                if let Some(next) = self.queue.dequeue(due, &mut self.exits) {
                    self.serve(due, next, credit);
                }
            } else {
                let sent = rate.saturating_mul(due.as_nanos() - service.since.as_nanos());
                service.left = service.left.saturating_sub(sent);
                service.since = due;
                self.segment = self.process.at(due);
                service.done = done(due, service.left, self.segment.bits_per_second);
                self.service = Some(service);
            }
        }
    }
}

impl<B: Send> Link<B> for Rate<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.advance(now);
        if self.service.is_some() {
            self.queue.enqueue(now, packet, &mut self.exits);
        } else if let Some(packet) = self.queue.pass(now, packet, &mut self.exits) {
            self.serve(now, packet, 0);
        }
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.advance(now);
        self.exits.pop_front()
    }

    fn next_event(&self) -> Option<Time> {
        match self.exits.front() {
            Some(exit) => Some(exit.at),
            None => self.due(),
        }
    }

    fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }
}

/// When `left` is sent from `since` on at `rate`, in whole nanoseconds.
fn done(since: Time, left: u64, rate: u64) -> Time {
    match rate {
        0 => Time::MAX,
        UNLIMITED => since,
        _ => Time::from_nanos(since.as_nanos().saturating_add(left.div_ceil(rate))),
    }
}

/// What could be sent at `rate` between the last bit of `left` and the end of that nanosecond.
const fn credit(left: u64, rate: u64) -> u64 {
    match rate {
        0 | UNLIMITED => 0,
        _ => (rate - left % rate) % rate,
    }
}

#[cfg(test)]
mod tests;
