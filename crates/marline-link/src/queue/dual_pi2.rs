//! DualPI2: a low-latency and a classic queue with coupled congestion signals (RFC 9332, appendix A).
//!
//! Packets with ECT(1) or CE enter the low-latency queue, all others the classic queue. Every
//! [`update`](DualPi2Config::update), a proportional integral controller turns the delay into a probability p':
//!
//! ```text
//! p' += alpha (delay - target) + beta (delay - previous delay)      (0 <= p' <= 1)
//! p_C = p'^2                 dropped, or marked if ECT(0), of the classic queue
//! p_CL = k p'                marked of the low-latency queue, at least
//! p_L = max(p'_L, p_CL)      p'_L: the ramp over the packet's own delay in that queue
//! ```
//!
//! The square gives a Reno or CUBIC flow and a scalable flow, whose rates are inversely proportional to the square
//! root of the probability and to the probability, the same rate.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Fifo, Queue, Queued};
use crate::{DropReason, Ecn, Exit, Packet, Time};

/// Weights of both queues in bytes while both have packets: the classic queue sends a tenth, as in Linux
/// (`sch_dualpi2`). RFC 9332 requires a scheduler that starves neither (section 2.2).
const CLASSIC_WEIGHT: i64 = 1;
const L4S_WEIGHT: i64 = 9;

/// The settings of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// Target delay of the classic queue.
    pub target: Duration,
    /// Update interval of the probability (Tupdate), at least a microsecond.
    pub update: Duration,
    /// Integral gain in Hz: increase per update for each second above the target.
    pub alpha: f64,
    /// Proportional gain in Hz: increase per update for each second of growth.
    pub beta: f64,
    /// Coupling factor (k).
    pub coupling: f64,
    /// Delay in the low-latency queue from which packets are marked (minTh).
    pub threshold: Duration,
    /// Width of the ramp, from that delay to the one at which all packets are marked; zero makes it a step.
    pub range: Duration,
    /// Limit of both queues in bytes, at least one packet.
    pub limit_bytes: u64,
}

impl DualPi2Config {
    /// The defaults of RFC 9332, appendix A.1, with this limit: for round-trip times of up to 100 ms.
    pub fn new(limit_bytes: u64) -> Self {
        const LONGEST_RTT: f64 = 0.1;
        let target = Duration::from_millis(15);
        let update = target.min(Duration::from_secs_f64(LONGEST_RTT / 3.0));
        Self {
            target,
            update,
            alpha: 0.1 * update.as_secs_f64() / (LONGEST_RTT * LONGEST_RTT),
            beta: 0.3 / LONGEST_RTT,
            coupling: 2.0,
            threshold: Duration::from_micros(800),
            range: Duration::from_micros(400),
            limit_bytes,
        }
    }

    /// The probability above which ECT(0) packets are dropped instead of marked (p_Cmax): all packets of the
    /// low-latency queue are marked there.
    fn overload(&self) -> f64 {
        (1.0 / (self.coupling * self.coupling)).min(1.0)
    }

    /// The share of packets to mark that waited for `delay` in the low-latency queue (`laqm`).
    fn ramp(&self, delay: Duration) -> f64 {
        let Some(above) = delay.checked_sub(self.threshold) else {
            return 0.0;
        };
        if above >= self.range {
            1.0
        } else {
            above.as_secs_f64() / self.range.as_secs_f64()
        }
    }
}

/// A queue, and its accumulated fraction of a signal (`recur`), which spaces signals evenly.
struct Part<B> {
    fifo: Fifo<B>,
    owed: f64,
}

impl<B> Part<B> {
    const fn new() -> Self {
        Self {
            fifo: Fifo::new(),
            owed: 0.0,
        }
    }

    /// Whether the next packet is signalled, at the rate `likelihood`.
    fn signals(&mut self, likelihood: f64) -> bool {
        self.owed += likelihood;
        let signals = self.owed > 1.0;
        if signals {
            self.owed -= 1.0;
        }
        signals
    }

    /// Waiting time of the oldest packet.
    fn delay(&self, now: Time) -> Duration {
        let oldest = self.fifo.oldest();
        oldest.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// Two queues managed by DualPI2, with a common limit.
pub struct DualPi2<B> {
    config: DualPi2Config,
    l4s: Part<B>,
    classic: Part<B>,
    /// Credit of the classic queue in weighted bytes; it is served while this is above 0.
    credit: i64,
    /// Base probability p'.
    base: f64,
    /// Delay at the last update.
    previous: Duration,
    /// Time of the next update.
    due: Time,
}

impl<B> DualPi2<B> {
    /// Empty queues.
    pub fn new(config: DualPi2Config) -> Self {
        Self {
            config: DualPi2Config {
                update: config.update.max(Duration::from_micros(1)),
                ..config
            },
            l4s: Part::new(),
            classic: Part::new(),
            credit: 0,
            base: 0.0,
            previous: Duration::ZERO,
            due: Time::ZERO + config.update,
        }
    }

    /// Runs the updates that were due by `now`. No packet has entered or left the queues since the last call, so
    /// the delay at each of them is known.
    fn advance(&mut self, now: Time) {
        while self.due <= now {
            let at = self.due;
            let delay = self.classic.delay(at).max(self.l4s.delay(at));
            if delay.is_zero() && self.previous.is_zero() && self.base <= 0.0 {
                // Idle: all updates until now have no effect.
                let update = self.config.update.as_nanos().max(1);
                let steps = now.since(at).as_nanos() / update + 1;
                let steps = u64::try_from(steps.saturating_mul(update)).unwrap_or(u64::MAX);
                self.due = at + Duration::from_nanos(steps);
                return;
            }
            self.update(delay);
            self.due = at + self.config.update;
        }
    }

    /// Updates the probability with the greater of the queues' delays, so that it controls either.
    fn update(&mut self, delay: Duration) {
        let seconds = delay.as_secs_f64();
        let error = seconds - self.config.target.as_secs_f64();
        let growth = seconds - self.previous.as_secs_f64();
        let base = self.base + self.config.alpha * error + self.config.beta * growth;
        self.base = base.clamp(0.0, 1.0);
        self.previous = delay;
    }

    /// The probability for classic packets (p_C).
    fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    fn push(&mut self, now: Time, packet: Packet<B>) {
        match packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.fifo.push(now, packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.fifo.push(now, packet),
        }
    }

    /// Takes the next packet according to the scheduler.
    fn take(&mut self) -> Option<Turn<B>> {
        let both = !self.l4s.fifo.is_empty() && !self.classic.fifo.is_empty();
        if !both {
            self.credit = 0;
        }
        if self.l4s.fifo.is_empty() || both && self.credit > 0 {
            let queued = self.classic.fifo.pop()?;
            if both {
                self.credit -= L4S_WEIGHT * i64::from(queued.packet.size);
            }
            return Some(Turn::Classic(queued.packet));
        }
        let is_alone = self.l4s.fifo.len() == 1;
        let queued = self.l4s.fifo.pop()?;
        if both {
            self.credit += CLASSIC_WEIGHT * i64::from(queued.packet.size);
        }
        Some(Turn::L4s { queued, is_alone })
    }

    /// The signal of a packet of the low-latency queue: marked, unmarked, or dropped (`None` is unchanged).
    fn signal_l4s(&mut self, now: Time, since: Time, is_alone: bool) -> Signal {
        let coupled = self.config.coupling * self.base;
        if coupled >= 1.0 {
            // Overload: marks alone are not sufficient.
            let probability = self.classic_probability();
            return match self.l4s.signals(probability) {
                true => Signal::Drop,
                false => Signal::Mark,
            };
        }
        let native = match is_alone {
            true => 0.0,
            false => self.config.ramp(now.since(since)),
        };
        match self.l4s.signals(native.max(coupled)) {
            true => Signal::Mark,
            false => Signal::None,
        }
    }

    fn signal_classic(&mut self, ecn: Ecn) -> Signal {
        let probability = self.classic_probability();
        if !self.classic.signals(probability) {
            return Signal::None;
        }
        match ecn.is_capable() && probability < self.config.overload() {
            true => Signal::Mark,
            false => Signal::Drop,
        }
    }
}

/// The next packet according to the scheduler.
enum Turn<B> {
    Classic(Packet<B>),
    L4s {
        queued: Queued<B>,
        /// Whether no other packet waits in its queue: one packet is not a standing queue (Th_len).
        is_alone: bool,
    },
}

enum Signal {
    None,
    Mark,
    Drop,
}

impl<B: Send> Queue<B> for DualPi2<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        self.advance(now);
        if self.bytes() + u64::from(packet.size) > self.config.limit_bytes {
            exits.push_back(Exit::dropped(now, packet, DropReason::QueueFull));
        } else {
            self.push(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        self.advance(now);
        loop {
            let (signal, mut packet) = match self.take()? {
                Turn::Classic(packet) => (self.signal_classic(packet.ecn), packet),
                Turn::L4s { queued, is_alone } => {
                    let signal = self.signal_l4s(now, queued.since, is_alone);
                    (signal, queued.packet)
                }
            };
            match signal {
                Signal::None => return Some(packet),
                Signal::Mark => {
                    packet.ecn = Ecn::Ce;
                    return Some(packet);
                }
                Signal::Drop => {
                    exits.push_back(Exit::dropped(now, packet, DropReason::QueueManagement));
                }
            }
        }
    }

    fn pass(
        &mut self,
        now: Time,
        packet: Packet<B>,
        exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        self.advance(now);
        self.push(now, packet);
        self.dequeue(now, exits)
    }

    fn bytes(&self) -> u64 {
        self.l4s.fifo.bytes() + self.classic.fifo.bytes()
    }

    fn len(&self) -> usize {
        self.l4s.fifo.len() + self.classic.fifo.len()
    }
}

#[cfg(test)]
mod tests;
