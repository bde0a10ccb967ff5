//! A packet, and how far it came.

use crate::{Packet, Station};

/// A packet on its way.
#[derive(Debug)]
pub(super) struct Entry<B> {
    /// Where it came from.
    pub(super) from: Station,
    /// Where it goes in the end.
    pub(super) to: Station,
    /// The sequence number of its MPDU on this hop, once it has one.
    pub(super) seq: u64,
    /// How often its MPDU failed on this hop.
    pub(super) tries: u32,
    /// The packet.
    pub(super) packet: Packet<B>,
}

impl<B> Entry<B> {
    /// Has not been sent.
    pub(super) const fn new(from: Station, to: Station, packet: Packet<B>) -> Self {
        Self {
            from,
            to,
            seq: 0,
            tries: 0,
            packet,
        }
    }
}
