//! Controlled delay (RFC 8289): drops when packets have waited too long for too long.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Fifo, Limit, Queue};
use crate::{DropReason, Ecn, Exit, Packet, Time};

/// The settings of CoDel, and of each queue of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// How long packets may wait at all times.
    pub target: Duration,
    /// For how long they may wait longer than that; about the longest round-trip time.
    pub interval: Duration,
    /// With no more bytes than this in the queue, nothing is dropped.
    pub mtu: u32,
    /// Whether packets that are ECN-capable are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// What RFC 8289, section 4, recommends for the Internet; without ECN.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: 1514,
            ecn: false,
        }
    }
}

/// A queue that CoDel manages, up to a limit.
pub struct Codel<B> {
    /// What waits.
    fifo: Fifo<B>,
    /// What decides about drops.
    control: Control,
    /// How much may wait.
    limit: Limit,
}

impl<B> Codel<B> {
    /// `limit` bounds what `config` does not: it should be far away.
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
        // The queue was found empty before, which ended all dropping.
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
    /// When packets will have waited longer than the target for an interval.
    first_above: Option<Time>,
    /// Whether it drops.
    dropping: bool,
    /// When the next drop is due, or was due last.
    next: Time,
    /// Drops since it began to drop.
    count: u32,
    /// What `count` began with then.
    first_count: u32,
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

    /// The next packet of `fifo` after drops.
    pub(super) fn dequeue<B>(
        &mut self,
        now: Time,
        fifo: &mut Fifo<B>,
        exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        let (mut packet, mut late) = self.take(now, fifo)?;
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
            (packet, _) = self.take(now, fifo)?;
        } else {
            while self.dropping && now >= self.next {
                self.count = self.count.saturating_add(1);
                if self.marks(&mut packet) {
                    self.next = self.after(self.next);
                    break;
                }
                exits.push_back(Exit::dropped(now, packet, DropReason::QueueManagement));
                (packet, late) = self.take(now, fifo)?;
                if late {
                    self.next = self.after(self.next);
                } else {
                    self.dropping = false;
                }
            }
        }
        Some(packet)
    }

    /// Takes the oldest packet, and tells whether packets have waited too long for an interval.
    fn take<B>(&mut self, now: Time, fifo: &mut Fifo<B>) -> Option<(Packet<B>, bool)> {
        let Some((came, packet)) = fifo.pop() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        if now.since(came) < self.config.target || fifo.bytes() <= u64::from(self.config.mtu) {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now + self.config.interval);
        Some((packet, now >= first_above))
    }

    /// What `count` begins with: soon after the last time, about where it was then.
    fn first_drops(&self, now: Time) -> u32 {
        let more = self.count.saturating_sub(self.first_count);
        if more > 1 && now.since(self.next) < 16 * self.config.interval {
            more
        } else {
            1
        }
    }

    /// When the next drop is due if one was at `at`: ever sooner, by the square root of their number.
    fn after(&self, at: Time) -> Time {
        let interval = self.config.interval.as_nanos() as f64;
        at + Duration::from_nanos((interval / f64::from(self.count).sqrt()) as u64)
    }

    /// Marks the packet, if that will do instead of dropping it.
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
