//! The radio of a mobile network of the fourth generation, as one phone sees it in one direction.
//!
//! Packets wait in a queue, from which the scheduler fills a transport block each millisecond (TTI);
//! a block ends and begins anywhere in a packet. Blocks fail and are tried again 8 ms later, and the
//! receiver gives nothing out of order: so everything behind a failed block waits, and then comes at
//! once. On the uplink a phone that was silent asks for a grant first.
//!
//! One way, without waiting: at most 1 ms until the TTI, 1 ms to send, 1.5 ms to decode. What the radio
//! does in a TTI depends on the seed and on that TTI alone: runs with equal seeds have equal radios,
//! whatever they send. TTIs begin at whole milliseconds since the epoch, in both directions: what
//! answers always as fast, always waits as long for the TTI of the way back.

mod access;
mod config;
mod harq;

pub use config::{Direction, Drx, LteConfig, RlcMode, StdScope};

use std::collections::VecDeque;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use self::access::Access;
use self::harq::Harq;
use crate::process::{OrnsteinUhlenbeck, RateProcess, Segment};
use crate::random::happens;
use crate::{DropReason, Exit, Link, Packet, Seed, Time};

/// A transmission time interval: milliseconds since the epoch.
type Tti = u64;

/// Nanoseconds in a TTI.
const TTI: u64 = 1_000_000;

/// From the beginning of a block's TTI to its being decoded.
const SEND_AND_DECODE: Duration = Duration::from_micros(2500);

/// How long a receiver waits for a block that is missing before it deems it lost (t-Reordering).
const T_REORDERING: Duration = Duration::from_millis(40);

/// One direction of a phone's bearer.
pub struct Lte<B> {
    /// How long the way to the radio is, or from it.
    core_delay: Duration,
    /// How many bytes may wait.
    queue_limit: u64,
    /// What becomes of blocks that fail.
    rlc_mode: RlcMode,
    /// How likely a packet is lost for other reasons.
    residual_loss: f64,
    /// What decides about that.
    loss: Pcg64Mcg,
    /// How much fits in a block.
    rate: OrnsteinUhlenbeck,
    /// What of that is known.
    segment: Segment,
    /// How blocks fare.
    harq: Harq,
    /// When packets may first be sent.
    access: Access,
    /// What waits.
    queue: VecDeque<Waiting<B>>,
    /// The bytes of that which were not sent.
    queued: u64,
    /// The first TTI that was not used.
    next: Tti,
    /// When the last block was given out.
    released: Time,
    /// What arrives, in order; also what the radio loses, at the time at which it would have arrived.
    arrivals: VecDeque<Exit<B>>,
    /// What the queue dropped, in order.
    drops: VecDeque<Exit<B>>,
}

/// A packet that waits.
struct Waiting<B> {
    /// The packet.
    packet: Packet<B>,
    /// The first TTI in which it may be sent.
    first: Tti,
    /// Its bytes that were not sent.
    left: u32,
    /// Whether a block with a part of it was lost.
    lost: bool,
}

impl<B> Lte<B> {
    /// A radio; equal seeds make unequal radios for the two directions.
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

    /// The TTI that is used next, if anything waits.
    fn due(&self) -> Option<Tti> {
        let head = self.queue.front()?;
        Some(self.harq.free(self.next.max(head.first)))
    }

    /// Uses the TTIs until `now`.
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
        let mut room = self.segment.bits_per_second / 8000;
        if room == 0 {
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
        while room > 0
            && let Some(head) = self.queue.front_mut().filter(|head| head.first <= tti)
        {
            let part = u32::try_from(room).unwrap_or(u32::MAX).min(head.left);
            room -= u64::from(part);
            self.queued -= u64::from(part);
            head.left -= part;
            head.lost |= lost;
            if head.left == 0 {
                self.release();
            }
        }
    }

    /// The last part of the packet at the head was sent.
    fn release(&mut self) {
        let Some(waiting) = self.queue.pop_front() else {
            return;
        };
        let lost = waiting.lost | happens(&mut self.loss, self.residual_loss);
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

/// When a TTI begins.
const fn start(tti: Tti) -> Time {
    Time::from_nanos(tti.saturating_mul(TTI))
}

/// A length of time in TTIs, rounded up.
fn ttis(time: Duration) -> Tti {
    Tti::try_from(time.as_nanos().div_ceil(u128::from(TTI))).unwrap_or(Tti::MAX)
}

#[cfg(test)]
mod tests;
