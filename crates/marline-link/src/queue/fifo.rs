//! A FIFO of packets with their arrival times.

use std::collections::VecDeque;

use crate::{Packet, Time};

/// A packet with its arrival time.
#[derive(Debug)]
pub(super) struct Queued<B> {
    /// Time of enqueueing.
    pub(super) since: Time,
    pub(super) packet: Packet<B>,
}

/// A FIFO queue without a limit.
pub(super) struct Fifo<B> {
    packets: VecDeque<Queued<B>>,
    /// Total size in bytes.
    bytes: u64,
}

impl<B> Fifo<B> {
    pub(super) const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(super) fn push(&mut self, now: Time, packet: Packet<B>) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back(Queued { since: now, packet });
    }

    /// Removes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Queued<B>> {
        let queued = self.packets.pop_front()?;
        self.bytes -= u64::from(queued.packet.size);
        Some(queued)
    }

    /// Removes the newest packet if it satisfies `condition`.
    pub(super) fn pop_last_if(
        &mut self,
        condition: impl FnOnce(&Packet<B>) -> bool,
    ) -> Option<Packet<B>> {
        let newest = self.packets.back()?;
        let newest = condition(&newest.packet).then(|| self.packets.pop_back())??;
        self.bytes -= u64::from(newest.packet.size);
        Some(newest.packet)
    }

    /// Time of enqueueing of the oldest packet.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.packets.front().map(|queued| queued.since)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}
