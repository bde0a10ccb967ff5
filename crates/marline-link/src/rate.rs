//! A transmitter with a queue.

use std::collections::VecDeque;

use crate::process::{RateProcess, Segment, Steady};
use crate::queue::Queue;
use crate::{Exit, Link, Packet, Time};

/// An unlimited rate: transmission takes no time.
pub const UNLIMITED: u64 = u64::MAX;

/// Transmits packets one at a time, at a constant or varying rate.
///
/// Departure times do not drift: the fraction of a nanosecond by which one departure is rounded up is
/// credited to the next packet of a busy period. The packet in transmission is not in the queue and
/// does not count towards its limit.
pub struct Rate<B> {
    /// The queue.
    queue: Box<dyn Queue<B>>,
    /// The rate.
    process: Box<dyn RateProcess>,
    /// The overhead of a packet, beside its bytes.
    framing: Framing,
    /// The current segment of the rate, while a packet is in transmission.
    segment: Segment,
    /// The packet in transmission.
    transmission: Option<Transmission<B>>,
    /// Packets that left or were dropped, not popped yet.
    exits: VecDeque<Exit<B>>,
}

/// The bytes that a link layer adds to packets (Linux `tc-stab`, and `overhead`, `mpu` and `atm` of `tc-cake`). Queue
/// limits do not count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each packet, 38 on Ethernet with preamble and gap.
    pub overhead: u32,
    /// The smallest frame, 84 bytes on Ethernet with preamble and gap.
    pub least: u32,
    /// Whether frames are cut into cells of ATM, of which 48 of 53 bytes carry data.
    pub atm: bool,
}

impl Framing {
    /// The bytes that a packet takes of the rate.
    pub const fn bytes(self, size: u32) -> u64 {
        let frame = size as u64 + self.overhead as u64;
        let frame = match frame < self.least as u64 {
            true => self.least as u64,
            false => frame,
        };
        match self.atm {
            true => frame.div_ceil(48) * 53,
            false => frame,
        }
    }
}

/// A packet in transmission.
struct Transmission<B> {
    /// The packet.
    packet: Packet<B>,
    /// Start of the transmission, or of the current rate if later.
    since: Time,
    /// Remaining size at `since`, in billionths of a bit: a rate of 1 bit per second is one
    /// billionth of a bit per nanosecond.
    left: u64,
    /// End of the transmission at the current rate, rounded up to nanoseconds.
    done: Time,
}

/// Billionths of a bit in a byte.
const BYTE: u64 = 8_000_000_000;

impl<B> Rate<B> {
    /// Transmits at a constant rate in bits per second, which may be [`UNLIMITED`], or 0 for never.
    pub fn new(bits_per_second: u64, queue: Box<dyn Queue<B>>) -> Self {
        Self::varying(Box::new(Steady { bits_per_second }), queue)
    }

    /// Transmits at a varying rate, which may also change within a packet.
    pub fn varying(process: Box<dyn RateProcess>, queue: Box<dyn Queue<B>>) -> Self {
        Self {
            queue,
            process,
            framing: Framing::default(),
            segment: Segment {
                bits_per_second: 0,
                until: Time::ZERO,
            },
            transmission: None,
            exits: VecDeque::new(),
        }
    }

    /// Transmits packets in frames.
    #[must_use]
    pub const fn with_framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Starts to transmit `packet`; `credit` is the capacity left over since the previous departure.
    fn transmit(&mut self, now: Time, packet: Packet<B>, credit: u64) {
        if self.segment.until <= now {
            self.segment = self.process.at(now);
        }
        let left = self
            .framing
            .bytes(packet.size)
            .saturating_mul(BYTE)
            .saturating_sub(credit);
        self.transmission = Some(Transmission {
            packet,
            since: now,
            left,
            done: done(now, left, self.segment.bits_per_second),
        });
    }

    /// Time at which the packet in transmission leaves, or the rate changes.
    fn due(&self) -> Option<Time> {
        let transmission = self.transmission.as_ref()?;
        let due = transmission.done.min(self.segment.until);
        (due < Time::MAX).then_some(due)
    }

    /// Processes everything due by `now`.
    fn advance(&mut self, now: Time) {
        while let Some(due) = self.due().filter(|due| *due <= now)
            && let Some(mut transmission) = self.transmission.take()
        {
            let rate = self.segment.bits_per_second;
            if transmission.done <= due {
                let credit = credit(transmission.left, rate);
                self.exits
                    .push_back(Exit::arrived(due, transmission.packet));
                if let Some(next) = self.queue.dequeue(due, &mut self.exits) {
                    self.transmit(due, next, credit);
                }
            } else {
                let sent = rate.saturating_mul(due.as_nanos() - transmission.since.as_nanos());
                transmission.left = transmission.left.saturating_sub(sent);
                transmission.since = due;
                self.segment = self.process.at(due);
                transmission.done = done(due, transmission.left, self.segment.bits_per_second);
                self.transmission = Some(transmission);
            }
        }
    }
}

impl<B: Send> Link<B> for Rate<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.advance(now);
        if self.transmission.is_some() {
            self.queue.enqueue(now, packet, &mut self.exits);
        } else if let Some(packet) = self.queue.pass(now, packet, &mut self.exits) {
            self.transmit(now, packet, 0);
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

/// The end of a transmission of `left` that starts at `since` at `rate`, rounded up to nanoseconds.
fn done(since: Time, left: u64, rate: u64) -> Time {
    match rate {
        0 => Time::MAX,
        UNLIMITED => since,
        _ => Time::from_nanos(since.as_nanos().saturating_add(left.div_ceil(rate))),
    }
}

/// The capacity at `rate` between the last bit of `left` and the end of that nanosecond.
const fn credit(left: u64, rate: u64) -> u64 {
    match rate {
        0 | UNLIMITED => 0,
        _ => (rate - left % rate) % rate,
    }
}

#[cfg(test)]
mod tests;
