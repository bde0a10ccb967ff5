//! Packets under a connection's real keys that say what no honest connection would: for tests and fuzzers.

use super::Connection;
use super::packet::Envelope;
use crate::level::SpaceId;
use crate::paths::Slot;
use crate::time::Instant;

impl Connection {
    /// A datagram of one 1-RTT packet that carries `frames`, with the next packet number of the `nth` path,
    /// modulo their number. The connection remembers it as sent. `None` if it has no keys for it.
    pub fn craft_frames(&mut self, now: Instant, nth: usize, frames: &[u8]) -> Option<Vec<u8>> {
        let count = self.paths.slots().count().max(1);
        let at = self.paths.slots().nth(nth % count)?;
        self.craft_packet(now, at, SpaceId::Data, frames, (0, 0))
    }

    /// A datagram of one packet of a path. `flip` inverts bits of its first byte before it is protected;
    /// `pad_to` is its least size, in bytes.
    pub(super) fn craft_packet(
        &mut self,
        now: Instant,
        at: Slot,
        space: SpaceId,
        frames: &[u8],
        (flip, pad_to): (u8, u16),
    ) -> Option<Vec<u8>> {
        let mut buf = Vec::new();
        let path = &self.paths[at];
        let envelope = Envelope {
            path: at,
            end: usize::MAX,
            ecn: false,
            tuple: path.tuples.active.generation,
            dcid: *path.remote_cids.active(),
        };
        let kind = self.sealing_kind(space)?;
        let mut packet = self
            .begin_packet(now, space, kind, &envelope, &mut buf)
            .ok()?;
        buf[0] ^= flip;
        buf.extend_from_slice(frames);
        Self::pad_packet(&mut packet, pad_to.into(), &mut buf);
        packet.ack_eliciting = true;
        self.finish_packet(now, packet, &envelope, &mut buf);
        Some(buf)
    }
}
