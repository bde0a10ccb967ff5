//! Packets with frames of the caller's choice under a connection's real keys: for tests and fuzzers.

use super::Connection;
use super::packet::DatagramContext;
use crate::level::SpaceId;
use crate::paths::Slot;
use crate::time::Instant;

/// How a crafted packet differs from one that the connection would build.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crafting {
    /// Bits of the first byte that are inverted before it is protected.
    pub(super) flip: u8,
    /// The least size of the packet, in bytes.
    pub(super) pad_to: u16,
}

impl Connection {
    /// A datagram of one 1-RTT packet that carries `frames`, with the next packet number of the `nth` path,
    /// modulo their number. The connection remembers it as sent. `None` if it has no keys for it.
    pub fn craft_frames(&mut self, now: Instant, nth: usize, frames: &[u8]) -> Option<Vec<u8>> {
        let count = self.paths.slots().count().max(1);
        let at = self.paths.slots().nth(nth % count)?;
        self.craft_packet(now, at, SpaceId::Data, frames, Crafting::default())
    }

    /// A datagram of one packet of a path.
    pub(super) fn craft_packet(
        &mut self,
        now: Instant,
        at: Slot,
        space: SpaceId,
        frames: &[u8],
        crafting: Crafting,
    ) -> Option<Vec<u8>> {
        let mut buf = Vec::new();
        let path = &self.paths[at];
        let datagram = DatagramContext {
            path: at,
            end: usize::MAX,
            ecn: false,
            tuple: path.tuples.active.generation,
            dcid: *path.remote_cids.active(),
        };
        let level = self.sealing_level(space)?;
        let mut packet = self.begin_packet(now, level, &datagram, &mut buf).ok()?;
        buf[0] ^= crafting.flip;
        buf.extend_from_slice(frames);
        Self::pad_packet(&mut packet, crafting.pad_to.into(), &mut buf);
        packet.ack_eliciting = true;
        self.finish_packet(now, packet, &datagram, &mut buf);
        Some(buf)
    }
}
