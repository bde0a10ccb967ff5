//! A CE marking threshold for packets with ECT(1), in front of any queue (RFC 9331, section 5; Linux's `ce_threshold`).

use std::collections::VecDeque;
use std::time::Duration;

use super::Queue;
use crate::{Ecn, Exit, Packet, Time};

/// Marks packets with ECT(1) that waited longer than a threshold.
///
/// A packet that leaves the queue empty is not marked: on a slow link it may wait longer for the one in transmission.
pub struct StepMarker<B> {
    queue: Box<dyn Queue<Stamped<B>>>,
    threshold: Duration,
    /// Packets dropped by the queue in a call.
    dropped: VecDeque<Exit<Stamped<B>>>,
}

/// A packet body with its arrival time.
pub struct Stamped<B> {
    since: Time,
    body: B,
}

impl<B> StepMarker<B> {
    /// Marks packets that waited longer than `threshold` in `queue`.
    pub fn new(threshold: Duration, queue: Box<dyn Queue<Stamped<B>>>) -> Self {
        Self {
            queue,
            threshold,
            dropped: VecDeque::new(),
        }
    }

    /// Passes on packets dropped by the queue.
    fn hand_on(&mut self, exits: &mut VecDeque<Exit<B>>) {
        exits.extend(self.dropped.drain(..).map(|exit| Exit {
            at: exit.at,
            packet: exit.packet.map(|stamped| stamped.body),
            dropped: exit.dropped,
        }));
    }

    fn mark(&self, now: Time, packet: Packet<Stamped<B>>) -> Packet<B> {
        let waited = now.since(packet.body.since);
        let is_late = waited > self.threshold && !self.queue.is_empty();
        let mut packet = packet.map(|stamped| stamped.body);
        if is_late && packet.ecn == Ecn::Ect1 {
            packet.ecn = Ecn::Ce;
        }
        packet
    }
}

fn stamp<B>(now: Time, packet: Packet<B>) -> Packet<Stamped<B>> {
    packet.map(|body| Stamped { since: now, body })
}

impl<B: Send> Queue<B> for StepMarker<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        let packet = stamp(now, packet);
        self.queue.enqueue(now, packet, &mut self.dropped);
        self.hand_on(exits);
    }

    fn dequeue(&mut self, now: Time, exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        let packet = self.queue.dequeue(now, &mut self.dropped);
        self.hand_on(exits);
        packet.map(|packet| self.mark(now, packet))
    }

    fn pass(
        &mut self,
        now: Time,
        packet: Packet<B>,
        exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        let packet = stamp(now, packet);
        let passed = self.queue.pass(now, packet, &mut self.dropped);
        self.hand_on(exits);
        passed.map(|packet| self.mark(now, packet))
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests;
