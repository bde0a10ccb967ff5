//! CoDel: controlled delay active queue management (RFC 8289).

use std::collections::VecDeque;
use std::time::Duration;

use super::fifo::{Fifo, Queued};
use super::{Limit, Queue};
use crate::{DropReason, Ecn, Exit, Packet, Time};

/// The settings of CoDel, also for each queue of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// TARGET: acceptable standing queue delay.
    pub target: Duration,
    /// INTERVAL: time for which the delay may exceed the target; about the longest round-trip time.
    pub interval: Duration,
    /// Queue size in bytes at or below which nothing is dropped.
    pub mtu: u32,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// The values that RFC 8289, section 4, recommends for the Internet, without ECN.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: 1514,
            ecn: false,
        }
    }
}

/// A FIFO queue managed by CoDel, with a limit.
pub struct Codel<B> {
    /// Queued packets.
    fifo: Fifo<B>,
    /// State machine that decides on drops.
    control: Control,
    /// Queue limit.
    limit: Limit,
}

impl<B> Codel<B> {
    /// An empty queue. `limit` should be large enough that CoDel rarely reaches it.
    pub const fn new(config: CodelConfig, limit: Limit) -> Self {
        Self {
            fifo: Fifo::new(),
            control: Control::new(config),
            limit,
        }
    }
}

impl<B: Send> Queue<B> for Codel<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        let bytes = self.fifo.bytes() + u64::from(packet.size);
        if self.limit.holds(bytes, self.fifo.len() + 1) {
            self.fifo.push(now, packet);
        } else {
            exits.push_back(Exit::dropped(now, packet, DropReason::QueueFull));
        }
    }

    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        self.control.dequeue(now, &mut self.fifo, exits)
    }

    fn pass(
        &mut self,
        _now: Time,
        packet: Packet<B>,
        _exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        // The last dequeue found the queue empty, which left the dropping state.
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }
}

/// The state machine of RFC 8289, section 5, for one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// The settings.
    config: CodelConfig,
    /// `first_above_time`: time at which the delay will have exceeded the target for an interval.
    first_above: Option<Time>,
    /// Whether it is in the dropping state.
    dropping: bool,
    /// `drop_next`: time of the next drop, or of the last one.
    next: Time,
    /// `count`: drops since the dropping state was entered.
    count: u32,
    /// `lastcount`: the initial value of `count` in the current dropping state.
    first_count: u32,
}

/// A packet taken from the queue.
struct Dequeued<B> {
    packet: Packet<B>,
    /// `ok_to_drop`: the delay has exceeded the target for an interval.
    late: bool,
}

impl Control {
    pub(super) const fn new(config: CodelConfig) -> Self {
        Self {
            config,
            first_above: None,
            dropping: false,
            next: Time::ZERO,
            count: 0,
            first_count: 0,
        }
    }

    /// Dequeues a packet, after dropping or marking as RFC 8289 specifies.
    pub(super) fn dequeue<B>(
        &mut self,
        now: Time,
        fifo: &mut Fifo<B>,
        exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        let Dequeued { mut packet, late } = self.take(now, fifo)?;
        if !late {
            self.dropping = false;
        } else if !self.dropping {
            self.dropping = true;
            self.count = self.first_drops(now);
            self.first_count = self.count;
            self.next = self.after(now);
            if self.marks(&mut packet) {
                return Some(packet);
            }
            exits.push_back(Exit::dropped(now, packet, DropReason::QueueManagement));
            packet = self.take(now, fifo)?.packet;
        } else {
            while self.dropping && now >= self.next {
                self.count = self.count.saturating_add(1);
                if self.marks(&mut packet) {
                    self.next = self.after(self.next);
                    break;
                }
                exits.push_back(Exit::dropped(now, packet, DropReason::QueueManagement));
                let next = self.take(now, fifo)?;
                packet = next.packet;
                if next.late {
                    self.next = self.after(self.next);
                } else {
                    self.dropping = false;
                }
            }
        }
        Some(packet)
    }

    /// Takes the oldest packet, and determines whether the delay has exceeded the target for an
    /// interval (`dodequeue` of RFC 8289, section 5.6).
    fn take<B>(&mut self, now: Time, fifo: &mut Fifo<B>) -> Option<Dequeued<B>> {
        let Some(Queued { since, packet }) = fifo.pop() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        if now.since(since) < self.config.target || fifo.bytes() <= u64::from(self.config.mtu) {
            self.first_above = None;
            return Some(Dequeued {
                packet,
                late: false,
            });
        }
        let first_above = *self.first_above.get_or_insert(now + self.config.interval);
        Some(Dequeued {
            packet,
            late: now >= first_above,
        })
    }

    /// The initial value of `count`: shortly after the last dropping state, about the value reached then.
    fn first_drops(&self, now: Time) -> u32 {
        let more = self.count.saturating_sub(self.first_count);
        if more > 1 && now.since(self.next) < 16 * self.config.interval {
            more
        } else {
            1
        }
    }

    /// The control law: the next drop after one at `at` is an interval divided by the square root of `count` later.
    fn after(&self, at: Time) -> Time {
        let interval = self.config.interval.as_nanos() as f64;
        at + Duration::from_nanos((interval / f64::from(self.count).sqrt()) as u64)
    }

    /// Marks the packet if ECN applies, and returns whether it did.
    const fn marks<B>(&self, packet: &mut Packet<B>) -> bool {
        let marks = self.config.ecn && packet.ecn.is_capable();
        if marks {
            packet.ecn = Ecn::Ce;
        }
        marks
    }
}

#[cfg(test)]
mod tests;
