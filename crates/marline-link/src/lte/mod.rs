//! An LTE radio link, as seen by one phone in one direction.
//!
//! Packets wait in a queue from which the scheduler fills one transport block each millisecond (TTI);
//! blocks begin and end anywhere within packets. Failed blocks are retransmitted 8 ms later, and the
//! receiver delivers in order: packets behind a failed block wait, and then arrive together. An idle
//! phone first requests an uplink grant.
//!
//! One-way delay without queueing: at most 1 ms until the TTI, 1 ms to transmit, 1.5 ms to decode. The
//! radio's behaviour in a TTI depends only on the seed and that TTI: runs with equal seeds have equal
//! radios, whatever they send. TTIs begin at whole milliseconds since the epoch in both directions, so
//! a host that answers after a constant time always waits equally long for the TTI of its answer.

mod access;
mod config;
mod harq;
mod signal;

pub use config::{Direction, Drx, LteConfig, RlcMode, StdScope};
pub use signal::LteSignal;

use std::collections::VecDeque;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use self::access::Access;
use self::harq::Harq;
use crate::process::{OrnsteinUhlenbeck, RateProcess, Segment};
use crate::random::bernoulli;
use crate::{DropReason, Exit, Link, Packet, Seed, Time};

/// A transmission time interval: milliseconds since the epoch.
type Tti = u64;

/// Nanoseconds in a TTI.
const TTI: u64 = 1_000_000;

/// From the start of a block's TTI to the end of its decoding.
const SEND_AND_DECODE: Duration = Duration::from_micros(2500);

/// Time that a receiver waits for a missing block before it declares it lost (t-Reordering).
const T_REORDERING: Duration = Duration::from_millis(40);

/// One direction of a phone's bearer.
pub struct Lte<B> {
    /// One-way delay between the radio and the edge of the operator's network.
    core_delay: Duration,
    /// Queue limit in bytes.
    queue_limit: u64,
    /// RLC mode, for blocks whose transmissions all failed.
    rlc_mode: RlcMode,
    /// Probability that a packet is lost despite retransmissions.
    residual_loss: f64,
    /// Generator of residual losses.
    loss: Pcg64Mcg,
    /// Rate process, which determines the size of blocks.
    rate: OrnsteinUhlenbeck,
    /// The current segment of the rate.
    segment: Segment,
    /// Block outcomes.
    harq: Harq,
    /// Channel access.
    access: Access,
    /// Queued packets.
    queue: VecDeque<Waiting<B>>,
    /// Unsent bytes in the queue.
    queued: u64,
    /// First TTI not processed yet.
    next: Tti,
    /// Time of the receiver's last in-order delivery of a block.
    released: Time,
    /// Arrivals in time order, and radio losses at the time at which they would have arrived.
    arrivals: VecDeque<Exit<B>>,
    /// Packets dropped by the queue, in time order.
    drops: VecDeque<Exit<B>>,
}

/// A queued packet.
struct Waiting<B> {
    /// The packet.
    packet: Packet<B>,
    /// The first TTI in which it may be sent.
    first: Tti,
    /// Unsent bytes.
    left: u32,
    /// Whether a block with part of it was lost.
    lost: bool,
}

impl<B> Lte<B> {
    /// Creates a radio. The two directions behave differently with equal seeds.
    pub fn new(config: &LteConfig, direction: Direction, seed: Seed) -> Self {
        let seed = seed.of(direction.name());
        Self {
            core_delay: config.core_delay,
            queue_limit: config.queue_bytes,
            rlc_mode: config.rlc_mode,
            residual_loss: config.residual_loss,
            loss: seed.of("loss").rng(),
            rate: config.radio_rate(seed),
            segment: Segment {
                bits_per_second: 0,
                until: Time::ZERO,
            },
            harq: Harq::new(config, seed),
            access: Access::new(config, direction, seed),
            queue: VecDeque::new(),
            queued: 0,
            next: 0,
            released: Time::ZERO,
            arrivals: VecDeque::new(),
            drops: VecDeque::new(),
        }
    }

    /// The next TTI to send in, if the queue is not empty.
    fn due(&self) -> Option<Tti> {
        let head = self.queue.front()?;
        Some(self.harq.free(self.next.max(head.first)))
    }

    /// Processes the TTIs up to `now`.
    fn advance(&mut self, now: Time) {
        while let Some(tti) = self.due().filter(|tti| start(*tti) <= now) {
            self.send(tti);
        }
    }

    /// Sends a block in `tti`.
    fn send(&mut self, tti: Tti) {
        if self.segment.until <= start(tti) {
            self.segment = self.rate.at(start(tti));
        }
        self.next = tti + 1;
        let mut capacity = self.segment.bits_per_second / 8000;
        if capacity == 0 {
            return;
        }
        self.access.used(tti);
        let outcome = self.harq.send(tti);
        let mut decoded = start(outcome.last) + SEND_AND_DECODE;
        if outcome.failed {
            decoded += T_REORDERING;
            if self.rlc_mode == RlcMode::Acknowledged {
                decoded += Duration::from_millis(harq::ROUND_TRIP);
            }
        }
        self.released = self.released.max(decoded);
        let lost = outcome.failed && self.rlc_mode == RlcMode::Unacknowledged;
        while capacity > 0
            && let Some(head) = self.queue.front_mut().filter(|head| head.first <= tti)
        {
            let part = u32::try_from(capacity).unwrap_or(u32::MAX).min(head.left);
            capacity -= u64::from(part);
            self.queued -= u64::from(part);
            head.left -= part;
            head.lost |= lost;
            if head.left == 0 {
                self.release();
            }
        }
    }

    /// Removes the packet at the head of the queue, which was sent completely.
    fn release(&mut self) {
        let Some(waiting) = self.queue.pop_front() else {
            return;
        };
        let lost = waiting.lost | bernoulli(&mut self.loss, self.residual_loss);
        self.arrivals.push_back(Exit {
            at: self.released + self.core_delay,
            packet: waiting.packet,
            dropped: lost.then_some(DropReason::RadioRetries),
        });
    }
}

impl<B: Send> Link<B> for Lte<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.advance(now);
        let size = u64::from(packet.size);
        if self.queued + size > self.queue_limit {
            let lost = Exit::dropped(now, packet, DropReason::QueueFull);
            self.drops.push_back(lost);
            return;
        }
        self.queued += size;
        self.queue.push_back(Waiting {
            first: self.access.first(now.as_nanos() / TTI + 1),
            left: packet.size,
            lost: false,
            packet,
        });
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.advance(now);
        let at = |exits: &VecDeque<Exit<B>>| exits.front().map_or(Time::MAX, |exit| exit.at);
        let (arrival, drop) = (at(&self.arrivals), at(&self.drops));
        if drop < arrival {
            self.drops.pop_front()
        } else if arrival <= now {
            self.arrivals.pop_front()
        } else {
            None
        }
    }

    fn next_event(&self) -> Option<Time> {
        let exits = [self.arrivals.front(), self.drops.front()];
        let exit = exits.into_iter().flatten().map(|exit| exit.at);
        exit.chain(self.due().map(start)).min()
    }

    fn queued_bytes(&self) -> u64 {
        self.queued
    }
}

/// The start of a TTI.
const fn start(tti: Tti) -> Time {
    Time::from_nanos(tti.saturating_mul(TTI))
}

/// A duration in TTIs, rounded up.
fn ttis(time: Duration) -> Tti {
    Tti::try_from(time.as_nanos().div_ceil(u128::from(TTI))).unwrap_or(Tti::MAX)
}

#[cfg(test)]
mod tests;
