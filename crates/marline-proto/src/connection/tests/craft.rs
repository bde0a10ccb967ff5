//! Packets under a connection's real keys that violate the protocol, and the state that a connection holds in
//! memory.

use super::super::craft::Crafting;
use super::*;
use crate::crypto::{self, Sealing, TAG_LEN};
use crate::limits::MIN_DATAGRAM_SIZE;
use marline_wire::packet::{ShortHeader, truncate};
use marline_wire::{PathId, varint};

/// A packet number that is encoded in four bytes and not reached otherwise by any test.
const FAR_NUMBER: u64 = 1 << 25;

impl Connection {
    /// A datagram of one packet that carries `frames`, with the next packet number. The connection
    /// records it as sent.
    pub(super) fn craft(&mut self, now: Instant, space: SpaceId, frames: &[u8]) -> Vec<u8> {
        self.craft_altered(now, space, frames, 0)
    }

    /// As [`Self::craft`], with the bits of `flip` inverted in the first byte before it is protected.
    pub(super) fn craft_altered(
        &mut self,
        now: Instant,
        space: SpaceId,
        frames: &[u8],
        flip: u8,
    ) -> Vec<u8> {
        let pad_to = match space {
            SpaceId::Initial => MIN_DATAGRAM_SIZE,
            SpaceId::Handshake | SpaceId::Data => 0,
        };
        self.craft_packet(now, Slot::FIRST, space, frames, Crafting { flip, pad_to })
            .expect("the keys exist")
    }

    /// An Initial packet in a datagram below the minimum size.
    pub(super) fn craft_small_initial(&mut self, now: Instant, frames: &[u8]) -> Vec<u8> {
        self.craft_packet(
            now,
            Slot::FIRST,
            SpaceId::Initial,
            frames,
            Crafting::default(),
        )
        .expect("the keys exist")
    }

    /// A 1-RTT packet without frames, which the connection does not record.
    pub(super) fn craft_empty(&mut self) -> Vec<u8> {
        let mut buf = Vec::new();
        let keys = self.establishment.one_rtt_mut().expect("the keys exist");
        let header = ShortHeader {
            dcid: *self.paths[Slot::FIRST].remote_cids.active(),
            spin: false,
            key_phase: keys.next_key_phase().expect("the keys are fresh"),
        };
        let end = header.encode(truncate(FAR_NUMBER, None), false, &mut buf);
        let sealing = Sealing {
            path_id: PathId::INITIAL,
            number: FAR_NUMBER,
            packet_start: 0,
            number_offset: end.number_offset,
            payload_offset: end.payload_offset,
        };
        keys.seal(sealing, &mut buf);
        assert_eq!(buf.len(), end.payload_offset + TAG_LEN);
        buf
    }

    /// Skips the next packet number; returns it.
    pub(super) fn skip_next(&mut self) -> u64 {
        let next = self.next_data_number();
        self.paths[Slot::FIRST].skip_at = next;
        next
    }

    /// The next number of a 1-RTT packet.
    pub(super) fn next_data_number(&self) -> u64 {
        self.paths[Slot::FIRST].space.sent.next_number()
    }

    /// Makes the source connection ID of long headers differ from that of the transport parameters.
    pub(super) fn falsify_source_cid(&mut self) {
        let id = self
            .rng
            .connection_id(self.establishment.progress().local_cid().len());
        self.establishment.progress_mut().set_local_cid(id);
    }

    /// Whether the connection has keys for a space.
    pub(super) fn can_seal(&self, space: SpaceId) -> bool {
        self.establishment.sealing_level(space).is_some()
    }
}

/// `values` as variable-length integers, one after another: most frames consist of these only.
pub(super) fn varints(values: &[u64]) -> Vec<u8> {
    let mut buf = Vec::new();
    for &value in values {
        varint::encode(value, &mut buf);
    }
    buf
}

/// A Retry packet as an on-path attacker can forge it.
pub(super) fn forge_retry(
    original: ConnectionId,
    dcid: ConnectionId,
    scid: ConnectionId,
    token: &[u8],
) -> Vec<u8> {
    use marline_wire::packet::{Retry, retry};
    let mut buf = Vec::new();
    Retry::encode_without_tag(marline_wire::Version::V1, dcid, scid, token, 0, &mut buf);
    let tag = crypto::retry_tag(
        marline_wire::Version::V1,
        &retry::pseudo_packet(original, &buf),
    );
    buf.extend_from_slice(&tag);
    buf
}
