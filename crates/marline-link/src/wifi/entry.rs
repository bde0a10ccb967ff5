//! Queue entries.

use crate::{Packet, Station};

/// A packet in a queue, with its state on this hop.
#[derive(Debug)]
pub(super) struct Entry<B> {
    /// The source.
    pub(super) from: Station,
    /// The destination.
    pub(super) to: Station,
    /// The sequence number of its MPDU on this hop, once it has one.
    pub(super) seq: u64,
    /// Failed transmissions of its MPDU on this hop.
    pub(super) tries: u32,
    /// The packet.
    pub(super) packet: Packet<B>,
}

impl<B> Entry<B> {
    /// A packet that was not sent yet.
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
