//! FIFO queues with a limit.

use std::collections::VecDeque;
use std::time::Duration;

use super::Queue;
use crate::{DropReason, Exit, Packet, Time};

/// A queue limit; the packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    Infinite,
    /// Size in bytes, of IP packets.
    Bytes(u64),
    /// Number of packets.
    Packets(usize),
}

impl Limit {
    /// The bytes that take `time` to send at `bits_per_second`.
    pub fn time(time: Duration, bits_per_second: u64) -> Self {
        let bits = time.as_nanos().saturating_mul(u128::from(bits_per_second)) / 1_000_000_000;
        Self::Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// Whether `bytes` in `packets` are within the limit.
    pub(super) const fn holds(self, bytes: u64, packets: usize) -> bool {
        match self {
            Self::Infinite => true,
            Self::Bytes(limit) => bytes <= limit,
            Self::Packets(limit) => packets <= limit,
        }
    }
}

/// A FIFO queue that drops at its tail or at its head when the limit is exceeded.
pub struct DropTail<B> {
    /// Queued packets.
    packets: VecDeque<Packet<B>>,
    /// Total size in bytes.
    bytes: u64,
    /// Queue limit.
    limit: Limit,
    /// Whether the oldest packets are dropped instead of the arriving one.
    head: bool,
}

impl<B> DropTail<B> {
    /// Drop-tail: drops an arriving packet that exceeds the limit.
    pub const fn new(limit: Limit) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            limit,
            head: false,
        }
    }

    /// Drop-head: drops the oldest packets until the arriving one is within the limit, so that the
    /// sender detects the loss a queueing delay earlier.
    pub const fn drop_head(limit: Limit) -> Self {
        let mut queue = Self::new(limit);
        queue.head = true;
        queue
    }

    /// Whether a packet of `size` more bytes is within the limit.
    fn fits(&self, size: u32) -> bool {
        self.limit
            .holds(self.bytes + u64::from(size), self.packets.len() + 1)
    }

    /// Removes the oldest packet.
    fn take(&mut self) -> Option<Packet<B>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }
}

impl<B: Send> Queue<B> for DropTail<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, exits: &mut VecDeque<Exit<B>>) {
        while self.head && !self.fits(packet.size) {
            let Some(oldest) = self.take() else { break };
            exits.push_back(Exit::dropped(now, oldest, DropReason::QueueFull));
        }
        if self.fits(packet.size) {
            self.bytes += u64::from(packet.size);
            self.packets.push_back(packet);
        } else {
            exits.push_back(Exit::dropped(now, packet, DropReason::QueueFull));
        }
    }

    fn dequeue(&mut self, _now: Time, _exits: &mut VecDeque<Exit<B>>) -> Option<Packet<B>> {
        self.take()
    }

    fn pass(
        &mut self,
        _now: Time,
        packet: Packet<B>,
        _exits: &mut VecDeque<Exit<B>>,
    ) -> Option<Packet<B>> {
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn len(&self) -> usize {
        self.packets.len()
    }
}
