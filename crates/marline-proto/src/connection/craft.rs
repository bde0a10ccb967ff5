//! Packets with arbitrary frames under a connection's real keys, for tests and fuzzers.

use super::Connection;
use super::packet::DatagramContext;
use crate::level::SpaceId;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::paths::Slot;
use crate::time::Instant;

/// Differences of a crafted packet from a regular one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crafting {
    /// Bits of the first byte that are inverted before it is protected.
    pub(super) flip: u8,
    /// Minimum size of the packet, in bytes.
    pub(super) pad_to: u16,
}

/// State that a connection holds because of its peer's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Received stream bytes that the application has not read.
    pub(crate) unread: usize,
    /// Written, unacknowledged stream bytes.
    pub(crate) unacked: u64,
    /// Tracked sent packets of all spaces.
    pub(crate) sent_packets: usize,
    /// Ranges of received packet numbers of all spaces.
    pub(crate) received_ranges: usize,
    /// Packets that wait for keys.
    pub(crate) deferred: usize,
    /// Open streams.
    pub(crate) streams: usize,
}

impl Connection {
    /// A datagram of one 1-RTT packet that carries `frames`, with the next packet number of the `nth` path,
    /// modulo the number of paths. The connection records it as sent. `None` without keys.
    pub fn craft_frames(&mut self, now: Instant, nth: usize, frames: &[u8]) -> Option<Vec<u8>> {
        let count = self.paths.slots().count().max(1);
        let at = self.paths.slots().nth(nth % count)?;
        self.craft_packet(now, at, SpaceId::Data, frames, Crafting::default())
    }

    /// As [`Self::craft_frames`], in a packet of `space` on the first path; in 0-RTT if the client has no other key for
    /// data. Initial packets are padded.
    pub(crate) fn craft_in(
        &mut self,
        now: Instant,
        space: SpaceId,
        frames: &[u8],
    ) -> Option<Vec<u8>> {
        let pad_to = match space {
            SpaceId::Initial => MIN_DATAGRAM_SIZE,
            SpaceId::Handshake | SpaceId::Data => 0,
        };
        self.craft_packet(
            now,
            Slot::FIRST,
            space,
            frames,
            Crafting { flip: 0, pad_to },
        )
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
            ecn: None,
            tuple: path.tuples.active.generation,
            dcid: *path.remote_cids.active(),
        };
        let level = self.establishment.sealing_level(space)?;
        let mut packet = self.begin_packet(now, level, &datagram, &mut buf).ok()?;
        buf[0] ^= crafting.flip;
        buf.extend_from_slice(frames);
        packet.pad(crafting.pad_to.into(), &mut buf);
        packet.ack_eliciting = true;
        self.finish_packet(now, packet, &datagram, &mut buf);
        Some(buf)
    }

    /// The state that the connection holds because of its peer's packets.
    pub(crate) fn held(&self) -> Held {
        let every = || self.paths.slots().flat_map(|at| self.spaces(at));
        Held {
            unread: self.streams.buffered(),
            unacked: self.streams.stats().bytes_held,
            sent_packets: every().map(|(_, space)| space.sent.len()).sum(),
            received_ranges: every().map(|(_, space)| space.received.len()).sum(),
            deferred: self.establishment.deferred(),
            streams: self.streams.stats().open,
        }
    }
}
