//! Queue entries.

use crate::{Packet, Station};

/// A packet in a queue, with its state on this hop.
#[derive(Debug)]
pub(super) struct Entry<B> {
    /// Source.
    pub(super) from: Station,
    /// Destination.
    pub(super) to: Station,
    /// Sequence number of its MPDU on this hop, once assigned.
    pub(super) seq: u64,
    /// Failed transmissions of its MPDU on this hop.
    pub(super) tries: u32,
    /// Packet.
    pub(super) packet: Packet<B>,
}

impl<B> Entry<B> {
    /// An unsent packet.
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
