//! Links recorded in the field, replayed: the packet delivery traces of Mahimahi.
//!
//! A trace is a text file: each line is a time in whole milliseconds since its start, at which the
//! link could have delivered 1504 bytes; times do not go down, and a time may come several times.
//! Played to its end, a trace begins anew, its last line being the new time 0.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::queue::Queue;
use crate::{DropReason, Exit, Link, Packet, Time};

/// What an opportunity can carry, in bytes: the largest packet of Mahimahi's tunnel.
pub const OPPORTUNITY: u32 = 1504;

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// When a link can deliver; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The opportunities, in milliseconds since the start; not empty, and the last is not 0.
    millis: Arc<[u32]>,
}

/// Why a text is not a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is no line in it.
    #[error("no lines")]
    Empty,
    /// A line is not a time in milliseconds, of at most 49 days.
    #[error("line {line}: not a whole number of milliseconds below 2^32")]
    NotATime {
        /// Which, from 1.
        line: usize,
    },
    /// A line is earlier than the one before.
    #[error("line {line}: {millis} ms is earlier than the line before, {before} ms")]
    Earlier {
        /// Which, from 1.
        line: usize,
        /// Its time.
        millis: u32,
        /// The time of the line before.
        before: u32,
    },
    /// The last line is 0: the trace has no length.
    #[error("line {line}: the last time is 0 ms, so the trace takes no time")]
    NoLength {
        /// Which, from 1.
        line: usize,
    },
}

impl Trace {
    /// Reads a trace file.
    ///
    /// # Errors
    ///
    /// Names the first line that is wrong.
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

    /// A trace of a constant rate: each opportunity is at the end of the millisecond in which it comes
    /// due. Rates below 1 bit per second are taken as that.
    ///
    /// It is as long as it takes to repeat exactly, or 100,000 opportunities if that is less.
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

    /// The opportunities, in milliseconds since the start, in order.
    pub fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// After how long it begins anew.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_millis())
    }

    /// What it can carry on average, in bits per second.
    pub fn mean_bits_per_second(&self) -> u64 {
        self.millis.len() as u64 * u64::from(OPPORTUNITY) * 8 * 1000 / self.period_millis()
    }

    /// After how many milliseconds it begins anew; never 0.
    fn period_millis(&self) -> u64 {
        self.millis.last().map_or(1, |last| u64::from(*last))
    }
}

/// Delivers when a [`Trace`] says so, in its accounting of bytes: an opportunity finishes as many
/// packets as fit, a packet may need several opportunities, and what an opportunity has left when
/// the queue is empty is lost. An opportunity at the moment at which a packet arrives is too early
/// for it.
pub struct TraceLink<B> {
    /// The opportunities.
    trace: Trace,
    /// Whether the trace ends instead of beginning anew.
    once: bool,
    /// How far into the trace the epoch is, in nanoseconds.
    phase: u64,
    /// What waits.
    queue: Box<dyn Queue<B>>,
    /// The packet that is partly delivered, and its bytes that are not.
    transit: Option<(Packet<B>, u32)>,
    /// The opportunity that is next: how often the trace began anew, and which of it. Present
    /// while something is to be delivered.
    next: Option<(u64, usize)>,
    /// What left, or was dropped, and was not yet given out.
    exits: VecDeque<Exit<B>>,
}

impl<B> TraceLink<B> {
    /// Plays `trace` from its start at the epoch, over and over.
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

    /// Plays the trace but once: after that nothing is delivered.
    #[must_use]
    pub const fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Begins at `phase` into the trace, so that runs can see different parts of it.
    #[must_use]
    pub fn starting_at(mut self, phase: Duration) -> Self {
        self.phase = u64::try_from(phase.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// When an opportunity is.
    fn time_of(&self, (round, index): (u64, usize)) -> Time {
        let millis = round
            .saturating_mul(self.trace.period_millis())
            .saturating_add(u64::from(self.trace.millis[index]));
        let nanos = millis.saturating_mul(MILLISECOND);
        Time::from_nanos(nanos.saturating_sub(self.phase))
    }

    /// The first opportunity later than `now`.
    fn first_after(&self, now: Time) -> Option<(u64, usize)> {
        let millis = now.as_nanos().saturating_add(self.phase) / MILLISECOND;
        let period = self.trace.period_millis();
        let (round, rest) = (millis / period, millis % period);
        let index = self
            .trace
            .millis
            .partition_point(|at| u64::from(*at) <= rest);
        (round == 0 || !self.once).then_some((round, index))
    }

    /// The opportunity that follows.
    fn following(&self, (round, index): (u64, usize)) -> Option<(u64, usize)> {
        if index + 1 < self.trace.millis.len() {
            Some((round, index + 1))
        } else {
            (!self.once).then_some((round + 1, 0))
        }
    }

    /// Uses the opportunities until `now`.
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

    /// Uses one opportunity, at `at`; tells whether nothing is left to deliver.
    fn deliver(&mut self, at: Time) -> bool {
        let mut room = OPPORTUNITY;
        while room > 0 {
            let transit = self.transit.take().or_else(|| {
                let packet = self.queue.dequeue(at, &mut self.exits)?;
                let size = packet.size;
                Some((packet, size))
            });
            let Some((packet, left)) = transit else {
                return true;
            };
            if left > room {
                self.transit = Some((packet, left - room));
                return false;
            }
            room -= left;
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
