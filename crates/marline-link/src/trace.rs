//! Replay of recorded links: packet delivery traces in the format of Mahimahi.
//!
//! A trace is a text file. Each line is a time in whole milliseconds since its start at which the link
//! can deliver 1504 bytes; times do not decrease and may repeat. After its last line a trace repeats,
//! with the time of the last line as the new time 0.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::queue::Queue;
use crate::{DropReason, Exit, Link, Packet, Time};

/// Bytes that a delivery opportunity carries: the largest packet of Mahimahi's tunnel.
pub const OPPORTUNITY: u32 = 1504;

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// A sequence of delivery opportunities. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The opportunities, in milliseconds since the start; not empty, and the last is not 0.
    millis: Arc<[u32]>,
}

/// The reason why a trace could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The trace has no lines.
    #[error("no lines")]
    Empty,
    /// A line is not a time in milliseconds below 2^32.
    #[error("line {line}: not an integer number of milliseconds below 2^32")]
    NotATime {
        /// Line number, from 1.
        line: usize,
    },
    /// A time is earlier than the previous one.
    #[error("line {line}: {millis} ms is earlier than the previous line, {before} ms")]
    Earlier {
        /// Line number, from 1.
        line: usize,
        /// Its time.
        millis: u32,
        /// The time of the previous line.
        before: u32,
    },
    /// The last time is 0, so the trace has no duration.
    #[error("line {line}: the last time is 0 ms, so the trace has no duration")]
    NoLength {
        /// Line number, from 1.
        line: usize,
    },
}

impl Trace {
    /// Parses a trace file.
    ///
    /// # Errors
    ///
    /// Names the first invalid line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut millis: Vec<u32> = Vec::new();
        for (line, entry) in (1..).zip(text.lines()) {
            let digits = entry.bytes().all(|byte| byte.is_ascii_digit());
            let time: u32 = match entry.parse() {
                Ok(time) if digits => time,
                _ => return Err(TraceError::NotATime { line }),
            };
            match millis.last() {
                Some(&before) if before > time => {
                    return Err(TraceError::Earlier {
                        line,
                        millis: time,
                        before,
                    });
                }
                _ => millis.push(time),
            }
        }
        match millis.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoLength { line: millis.len() }),
            Some(_) => Ok(Self {
                millis: millis.into(),
            }),
        }
    }

    /// A trace of a constant rate: each opportunity is at the end of the millisecond in which it is due.
    /// Rates below 1 bit per second are raised to that.
    ///
    /// The trace is as long as an exact repetition requires, but at most 100,000 opportunities.
    pub fn constant(bits_per_second: u64) -> Self {
        const BITS_PER_SECOND: u64 = OPPORTUNITY as u64 * 8 * 1000;
        let rate = bits_per_second.max(1);
        let count = (rate / gcd(rate, BITS_PER_SECOND)).min(100_000);
        let time = |index: u64| (index * BITS_PER_SECOND).div_ceil(rate);
        let millis = (1..=count).map(|index| u32::try_from(time(index)).unwrap_or(u32::MAX));
        Self {
            millis: millis.collect(),
        }
    }

    /// The times of the opportunities in milliseconds since the start, in order.
    pub fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// The duration after which the trace repeats.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_millis())
    }

    /// Mean rate, in bits per second.
    pub fn mean_bits_per_second(&self) -> u64 {
        self.millis.len() as u64 * u64::from(OPPORTUNITY) * 8 * 1000 / self.period_millis()
    }

    /// The duration after which the trace repeats, in milliseconds; never 0.
    fn period_millis(&self) -> u64 {
        self.millis.last().map_or(1, |last| u64::from(*last))
    }
}

/// Delivers packets at the opportunities of a [`Trace`] with the byte accounting of Mahimahi: an
/// opportunity completes as many packets as fit, a packet may take several opportunities, and the rest
/// of an opportunity is lost when the queue is empty. An opportunity at the arrival time of a packet is
/// too early for that packet.
pub struct TraceLink<B> {
    /// Delivery opportunities.
    trace: Trace,
    /// Whether the trace is played only once.
    once: bool,
    /// Offset of the epoch in the trace, in nanoseconds.
    phase: u64,
    /// The queue.
    queue: Box<dyn Queue<B>>,
    /// Partly delivered packet.
    transit: Option<Transit<B>>,
    /// Next opportunity, while packets are to be delivered.
    next: Option<Opportunity>,
    /// Packets that left or were dropped, not popped yet.
    exits: VecDeque<Exit<B>>,
}

/// A partly delivered packet.
struct Transit<B> {
    packet: Packet<B>,
    /// Bytes not yet delivered.
    left: u32,
}

/// An opportunity of a repeated trace.
#[derive(Clone, Copy)]
struct Opportunity {
    /// Number of repetitions of the trace.
    round: u64,
    /// Index in the trace.
    index: usize,
}

impl<B> TraceLink<B> {
    /// Plays `trace` repeatedly, from its start at the epoch.
    pub fn new(trace: Trace, queue: Box<dyn Queue<B>>) -> Self {
        Self {
            trace,
            once: false,
            phase: 0,
            queue,
            transit: None,
            next: None,
            exits: VecDeque::new(),
        }
    }

    /// Plays the trace once; nothing is delivered after its end.
    #[must_use]
    pub const fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Starts at offset `phase` in the trace, so that runs can use different parts of it.
    #[must_use]
    pub fn starting_at(mut self, phase: Duration) -> Self {
        self.phase = u64::try_from(phase.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// The time of an opportunity.
    fn time_of(&self, Opportunity { round, index }: Opportunity) -> Time {
        let millis = round
            .saturating_mul(self.trace.period_millis())
            .saturating_add(u64::from(self.trace.millis[index]));
        let nanos = millis.saturating_mul(MILLISECOND);
        Time::from_nanos(nanos.saturating_sub(self.phase))
    }

    /// The first opportunity later than `now`.
    fn first_after(&self, now: Time) -> Option<Opportunity> {
        let millis = now.as_nanos().saturating_add(self.phase) / MILLISECOND;
        let period = self.trace.period_millis();
        let (round, rest) = (millis / period, millis % period);
        let index = self
            .trace
            .millis
            .partition_point(|at| u64::from(*at) <= rest);
        (round == 0 || !self.once).then_some(Opportunity { round, index })
    }

    /// The opportunity after the given one, if the trace continues.
    fn following(&self, Opportunity { round, index }: Opportunity) -> Option<Opportunity> {
        if index + 1 < self.trace.millis.len() {
            Some(Opportunity {
                round,
                index: index + 1,
            })
        } else {
            (!self.once).then_some(Opportunity {
                round: round + 1,
                index: 0,
            })
        }
    }

    /// Processes the opportunities up to `now`.
    fn advance(&mut self, now: Time) {
        while let Some(opportunity) = self.next {
            let at = self.time_of(opportunity);
            if at > now {
                break;
            }
            let idle = self.deliver(at);
            self.next = if idle {
                None
            } else {
                self.following(opportunity)
            };
        }
    }

    /// Processes one opportunity, at `at`. Returns whether nothing is left to deliver.
    fn deliver(&mut self, at: Time) -> bool {
        let mut capacity = OPPORTUNITY;
        while capacity > 0 {
            let transit = self.transit.take().or_else(|| {
                let packet = self.queue.dequeue(at, &mut self.exits)?;
                let left = packet.size;
                Some(Transit { packet, left })
            });
            let Some(Transit { packet, left }) = transit else {
                return true;
            };
            if left > capacity {
                self.transit = Some(Transit {
                    packet,
                    left: left - capacity,
                });
                return false;
            }
            capacity -= left;
            self.exits.push_back(Exit::arrived(at, packet));
        }
        self.queue.is_empty()
    }
}

impl<B: Send> Link<B> for TraceLink<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.advance(now);
        if packet.size > OPPORTUNITY {
            let lost = Exit::dropped(now, packet, DropReason::TooLarge);
            self.exits.push_back(lost);
            return;
        }
        self.queue.enqueue(now, packet, &mut self.exits);
        if self.next.is_none() && !self.queue.is_empty() {
            self.next = self.first_after(now);
        }
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.advance(now);
        self.exits.pop_front()
    }

    fn next_event(&self) -> Option<Time> {
        match self.exits.front() {
            Some(exit) => Some(exit.at),
            None => self.next.map(|opportunity| self.time_of(opportunity)),
        }
    }

    fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }
}

/// The greatest common divisor; neither is 0.
const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
