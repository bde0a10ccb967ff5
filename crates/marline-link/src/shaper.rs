//! Shapers: a rate that is enforced with a queue.

use std::collections::VecDeque;

use crate::bucket::Bucket;
use crate::{DropReason, Exit, Link, Packet, Time};

/// The settings of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaperConfig {
    /// Rate in the long term, in bits per second of IP packets.
    pub rate: u64,
    /// Size of the bucket, in bytes: what passes at once after a pause. Larger packets never pass.
    pub burst: u64,
    /// The rate within a burst; `None` for no limit.
    pub peak: Option<Peak>,
    /// Limit of the bytes that wait, the first packet included.
    pub limit: u64,
}

/// The second bucket of a shaper, which limits the rate within a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Rate, in bits per second.
    pub rate: u64,
    /// Size of the bucket, in bytes; at least a full packet. Larger packets never pass.
    pub burst: u64,
}

/// A token-bucket shaper: packets wait until both buckets hold their size, and then leave at once (Linux `tc-tbf`;
/// its marking analogue with two rates is RFC 2698).
///
/// Unlike a [`Rate`](crate::Rate), it takes no time to transmit a packet: after a pause it passes a burst without
/// delay. As in `tc-tbf`, the limit counts the first packet too, and a packet that exceeds the size of a bucket is
/// dropped.
pub struct Shaper<B> {
    committed: Bucket,
    peak: Option<Bucket>,
    limit: u64,
    waiting: VecDeque<Packet<B>>,
    /// Size of the waiting packets, in bytes.
    bytes: u64,
    /// Departure of the first waiting packet.
    due: Time,
    exits: VecDeque<Exit<B>>,
}

impl<B> Shaper<B> {
    /// A shaper whose buckets are full.
    pub fn new(config: ShaperConfig) -> Self {
        Self {
            committed: Bucket::new(config.rate, config.burst),
            peak: config.peak.map(|peak| Bucket::new(peak.rate, peak.burst)),
            limit: config.limit,
            waiting: VecDeque::new(),
            bytes: 0,
            due: Time::MAX,
            exits: VecDeque::new(),
        }
    }

    fn advance(&mut self, now: Time) {
        while self.due <= now
            && let Some(packet) = self.waiting.pop_front()
        {
            let at = self.due;
            self.bytes -= u64::from(packet.size);
            self.committed.take(at, packet.size);
            if let Some(peak) = &mut self.peak {
                peak.take(at, packet.size);
            }
            self.exits.push_back(Exit::arrived(at, packet));
            self.plan(at);
        }
    }

    /// Determines the departure of the first waiting packet, which is not before `now`.
    fn plan(&mut self, now: Time) {
        let Some(first) = self.waiting.front() else {
            self.due = Time::MAX;
            return;
        };
        let committed = self.committed.ready(now, first.size);
        let peak = self.peak.as_mut();
        self.due = peak.map_or(committed, |peak| peak.ready(now, first.size).max(committed));
    }

    /// Whether a packet of `size` bytes may pass at some time.
    fn can_pass(&self, size: u32) -> bool {
        let buckets = std::iter::once(&self.committed).chain(&self.peak);
        buckets.into_iter().all(|bucket| bucket.can_hold(size))
    }
}

impl<B: Send> Link<B> for Shaper<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.advance(now);
        let size = u64::from(packet.size);
        let reason = if !self.can_pass(packet.size) {
            Some(DropReason::TooLarge)
        } else if self.bytes + size > self.limit {
            Some(DropReason::QueueFull)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.exits.push_back(Exit::dropped(now, packet, reason));
            return;
        }
        self.bytes += size;
        self.waiting.push_back(packet);
        if self.waiting.len() == 1 {
            self.plan(now);
        }
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.advance(now);
        self.exits.pop_front()
    }

    fn next_event(&self) -> Option<Time> {
        match self.exits.front() {
            Some(exit) => Some(exit.at),
            None => (self.due < Time::MAX).then_some(self.due),
        }
    }

    fn queued_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
