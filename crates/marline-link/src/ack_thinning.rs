//! Middleboxes that thin out acknowledgments.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::time::Duration;

use crate::{DropReason, Exit, Link, Packet, Time};

#[cfg(test)]
mod tests;

/// Size in bytes of an IP packet up to which it counts as an acknowledgment: one of TCP with options, or of QUIC with a
/// few ranges.
pub const SMALL: u32 = 100;

/// Whether a packet counts as an acknowledgment.
pub(crate) const fn is_small<B>(packet: &Packet<B>) -> bool {
    packet.size <= SMALL
}

/// Passes one in several acknowledgments of each flow, as cable modems, satellite gateways and performance-enhancing
/// proxies do (RFC 3449, section 5.2): it holds one, which newer ones of the flow replace, until enough came or a time
/// has passed. The newest is never lost.
///
/// Models do not read packets: all those of at most [`SMALL`] bytes count as acknowledgments. Those of QUIC are
/// encrypted, so that a real middlebox can do no better, and carry other frames, too, which this loses.
pub struct AckThinning<B> {
    every: NonZeroU64,
    hold: Duration,
    held: BTreeMap<u64, Held<B>>,
    exits: VecDeque<Exit<B>>,
}

/// The held packet of a flow.
struct Held<B> {
    packet: Packet<B>,
    /// Packets since the last that passed, this included.
    count: u64,
    until: Time,
}

impl<B> AckThinning<B> {
    /// Passes every `every`-th acknowledgment of a flow, or the newest when the first that it replaced has waited for
    /// `hold`.
    pub const fn new(every: NonZeroU64, hold: Duration) -> Self {
        Self {
            every,
            hold,
            held: BTreeMap::new(),
            exits: VecDeque::new(),
        }
    }

    /// The flow whose packet must leave next.
    fn first(&self) -> Option<(Time, u64)> {
        let due = self.held.iter().map(|(flow, held)| (held.until, *flow));
        due.min()
    }

    fn advance(&mut self, now: Time) {
        while let Some((at, flow)) = self.first()
            && at <= now
            && let Some(held) = self.held.remove(&flow)
        {
            self.exits.push_back(Exit::arrived(at, held.packet));
        }
    }
}

impl<B: Send> Link<B> for AckThinning<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.advance(now);
        let held = self.held.remove(&packet.flow);
        if !is_small(&packet) {
            let before = held.map(|held| held.packet);
            let both = before.into_iter().chain([packet]);
            self.exits
                .extend(both.map(|packet| Exit::arrived(now, packet)));
            return;
        }
        let (count, until) = match held {
            Some(held) => {
                let reason = DropReason::QueueManagement;
                self.exits
                    .push_back(Exit::dropped(now, held.packet, reason));
                (held.count + 1, held.until)
            }
            None => (1, now + self.hold),
        };
        if count >= self.every.get() {
            self.exits.push_back(Exit::arrived(now, packet));
            return;
        }
        let flow = packet.flow;
        let held = Held {
            packet,
            count,
            until,
        };
        self.held.insert(flow, held);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.advance(now);
        self.exits.pop_front()
    }

    fn next_event(&self) -> Option<Time> {
        match self.exits.front() {
            Some(exit) => Some(exit.at),
            None => self.first().map(|(at, _)| at),
        }
    }

    fn queued_bytes(&self) -> u64 {
        let held = self.held.values();
        held.map(|held| u64::from(held.packet.size)).sum()
    }
}
