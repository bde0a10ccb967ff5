//! Packets with the moment at which they came.

use std::collections::VecDeque;

use crate::{Packet, Time};

/// First in, first out.
pub(super) struct Fifo<B> {
    /// What waits, and since when.
    packets: VecDeque<(Time, Packet<B>)>,
    /// The sum of their sizes.
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
        self.packets.push_back((now, packet));
    }

    /// Takes the oldest packet, and tells when it came.
    pub(super) fn pop(&mut self) -> Option<(Time, Packet<B>)> {
        let (came, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some((came, packet))
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
