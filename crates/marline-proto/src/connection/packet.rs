//! Builds one packet: header, padding, protection.

use marline_wire::packet::{
    LongHeader, LongType, ShortHeader, patch_length, truncate, truncate_for_reordering,
};
use marline_wire::{ConnectionId, TransportError, frame, varint};

use super::Connection;
use crate::crypto::{Sealing, TAG_LEN};
use crate::level::{EncryptionLevel, SpaceId};
use crate::observe::Event;
use crate::observe::events::{Ecn, PacketSent};
use crate::paths::Slot;
use crate::recovery::OutgoingPacket;
use crate::spaces::Sent;
use crate::time::Instant;
use crate::token::Token;
use crate::tuple::EcnCodepoint;

/// Minimum length of packet number and payload together, from which the header protection sample is taken, in
/// bytes (RFC 9001, section 5.4.2).
const MIN_NUMBER_AND_PAYLOAD: usize = 4;

/// A packet under construction at the end of the buffer.
#[derive(Debug)]
pub(super) struct PacketBuilder {
    pub(super) path: Slot,
    pub(super) level: EncryptionLevel,
    number: u64,
    /// Offset of the packet in the buffer.
    start: usize,
    offsets: HeaderOffsets,
    /// Maximum length of the buffer, which frames must not exceed, in bytes.
    pub(super) limit: usize,
    pub(super) ack_eliciting: bool,
    pub(super) padded: bool,
    /// Whether its datagram must be expanded to 1200 bytes.
    pub(super) wants_full: bool,
    pub(super) mtu_probe: bool,
}

/// Offsets of the parts of a packet in the buffer.
#[derive(Clone, Copy, Debug)]
struct HeaderOffsets {
    number: usize,
    payload: usize,
    /// Offset of the Length field of a long header.
    length: Option<usize>,
}

impl PacketBuilder {
    /// Whether `buf` ends with the packet's header.
    pub(super) fn is_empty(&self, buf: &[u8]) -> bool {
        buf.len() == self.offsets.payload
    }

    /// Removes a packet without frames from the buffer.
    pub(super) fn abandon(&self, buf: &mut Vec<u8>) {
        buf.truncate(self.start);
    }

    /// Pads the packet so that the buffer reaches `until`, tag included, if it is shorter.
    pub(super) fn pad(&mut self, until: usize, buf: &mut Vec<u8>) {
        let target = until.saturating_sub(TAG_LEN);
        if buf.len() < target {
            buf.resize(target, frame::PADDING as u8);
            self.padded = true;
        }
    }

    /// Appends a PING.
    pub(super) fn ping(&mut self, buf: &mut Vec<u8>) {
        if buf.len() < self.limit {
            varint::encode(frame::PING, buf);
            self.ack_eliciting = true;
        }
    }
}

/// Properties shared by the packets of one datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramContext {
    pub(super) path: Slot,
    /// Maximum length of the buffer, which the datagram must not exceed, in bytes.
    pub(super) end: usize,
    /// ECN codepoint of the datagram.
    pub(super) ecn: Option<EcnCodepoint>,
    /// Generation of the 4-tuple on which it is sent.
    pub(super) tuple: u32,
    /// Destination connection ID.
    pub(super) dcid: ConnectionId,
}

impl Connection {
    /// Writes the header of a new packet.
    ///
    /// # Errors
    ///
    /// AEAD_LIMIT_REACHED if the keys may protect no more packets.
    pub(super) fn begin_packet(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        datagram: &DatagramContext,
        buf: &mut Vec<u8>,
    ) -> Result<PacketBuilder, TransportError> {
        let start = buf.len();
        let clear_fixed_bit = self.establishment.peer().grease_fixed_bit && self.rng.bit();
        let key_phase = match self.establishment.one_rtt_mut() {
            Some(keys) if level == EncryptionLevel::OneRtt => keys.next_key_phase()?,
            _ => false,
        };
        let at = datagram.path;
        let path = &mut self.paths[at];
        let space = level.space();
        if space == SpaceId::Data && path.space.sent.next_number() == path.skip_at {
            path.space.sent.skip(now);
            path.skip_at = self.rng.next_skip(path.skip_at);
        }
        let sent = self.sent(at, space);
        let number = sent.map_or(0, Sent::next_number);
        let largest_acked = sent.and_then(Sent::largest_acked);
        let truncated = match space {
            SpaceId::Initial | SpaceId::Handshake => truncate(number, largest_acked),
            SpaceId::Data => truncate_for_reordering(number, largest_acked),
        };
        let long_type = match level {
            EncryptionLevel::Initial => Some(LongType::Initial),
            EncryptionLevel::ZeroRtt => Some(LongType::ZeroRtt),
            EncryptionLevel::Handshake => Some(LongType::Handshake),
            EncryptionLevel::OneRtt => None,
        };
        let offsets = match long_type {
            None => {
                let header = ShortHeader {
                    dcid: datagram.dcid,
                    spin: self.rng.spin(),
                    key_phase,
                };
                let end = header.encode(truncated, clear_fixed_bit, buf);
                HeaderOffsets {
                    number: end.number_offset,
                    payload: end.payload_offset,
                    length: None,
                }
            }
            Some(kind) => {
                let token = match kind {
                    LongType::Initial => self.establishment.progress().initial_token(),
                    _ => &[],
                };
                let version = match kind {
                    LongType::ZeroRtt => self.establishment.versions().original(),
                    _ => self.establishment.versions().current(),
                };
                let header = LongHeader {
                    kind,
                    version,
                    dcid: datagram.dcid,
                    scid: self.establishment.progress().local_cid(),
                    token,
                };
                let end = header.encode(truncated, clear_fixed_bit, buf);
                HeaderOffsets {
                    number: end.number_offset,
                    payload: end.payload_offset,
                    length: Some(end.length_offset),
                }
            }
        };
        Ok(PacketBuilder {
            path: at,
            level,
            number,
            start,
            offsets,
            limit: datagram.end.saturating_sub(TAG_LEN),
            ack_eliciting: false,
            padded: false,
            wants_full: false,
            mtu_probe: false,
        })
    }

    /// The packets sent in a space of a path; `None` if the space is discarded.
    fn sent(&self, at: Slot, space: SpaceId) -> Option<&Sent<Token>> {
        match space {
            SpaceId::Data => Some(&self.paths[at].space.sent),
            handshake => Some(&self.establishment.space(handshake)?.sent),
        }
    }

    /// Protects the packet and records it as sent.
    pub(super) fn finish_packet(
        &mut self,
        now: Instant,
        mut packet: PacketBuilder,
        datagram: &DatagramContext,
        buf: &mut Vec<u8>,
    ) {
        let shortest = packet.offsets.number + MIN_NUMBER_AND_PAYLOAD + TAG_LEN;
        packet.pad(shortest, buf);
        if let Some(length_offset) = packet.offsets.length {
            let length = buf.len() + TAG_LEN - packet.offsets.number;
            patch_length(buf, length_offset, length);
        }
        let size = buf.len() + TAG_LEN - packet.start;
        let path_id = self.paths[packet.path].id;
        if let Some(observer) = &mut self.telemetry.observer {
            let event = PacketSent {
                path: path_id,
                kind: packet.level.into(),
                number: Some(packet.number),
                size,
                payload: &buf[packet.offsets.payload..],
                ecn: Ecn::of(datagram.ecn),
                datagram: self.telemetry.counters.datagrams_sent as u32,
                is_mtu_probe: packet.mtu_probe,
                trigger: None,
            };
            observer.on_event(now, &Event::PacketSent(event));
        }
        let sealing = Sealing {
            path_id,
            number: packet.number,
            packet_start: packet.start,
            number_offset: packet.offsets.number,
            payload_offset: packet.offsets.payload,
        };
        self.establishment.seal(packet.level, sealing, buf);
        self.record_sent(now, &packet, datagram, size);
        if packet.level == EncryptionLevel::Handshake && self.side.is_client() {
            self.establishment
                .on_handshake_packet_sent(size, packet.ack_eliciting);
            // RFC 9001, section 4.9.1.
            self.discard_keys(now, SpaceId::Initial);
        }
        if packet.level == EncryptionLevel::OneRtt && packet.ack_eliciting && self.side.is_client()
        {
            let rtt = self.paths[Slot::FIRST].recovery.rtt();
            self.establishment.on_data_sent(now, rtt);
        }
    }

    /// Records the packet in its space, in recovery, and in other state that depends on sent packets.
    fn record_sent(
        &mut self,
        now: Instant,
        packet: &PacketBuilder,
        datagram: &DatagramContext,
        size: usize,
    ) {
        let path = &mut self.paths[packet.path];
        let id = packet.level.space();
        let space = match id {
            SpaceId::Data => &mut path.space,
            early => match self.establishment.space_mut(early) {
                Some(space) => space,
                None => return,
            },
        };
        let outgoing = OutgoingPacket {
            space: id,
            size: size as u16,
            ack_eliciting: packet.ack_eliciting,
            in_flight: packet.ack_eliciting || packet.padded,
            ecn: datagram.ecn.is_some(),
            mtu_probe: packet.mtu_probe,
            tuple: datagram.tuple,
        };
        debug_assert_eq!(space.sent.next_number(), packet.number);
        let counted = path.recovery.on_sent(now, &outgoing, &mut space.sent);
        if packet.ack_eliciting {
            self.idle.on_sent(now);
            path.acks_alone = 0;
            if id == SpaceId::Data && !packet.mtu_probe {
                path.liveness.on_sent(now);
            }
        } else {
            path.acks_alone += 1;
        }
        if let Some(sample) = counted
            && id == SpaceId::Data
        {
            path.drive_careful_resume(|engine| engine.on_sent(now, &sample));
        }
        if datagram.ecn.is_some() {
            let pto = path.recovery.pto(self.establishment.peer().max_ack_delay);
            let ledger = &mut path.ledgers[id as usize];
            path.tuples.active.ecn.on_sent(ledger, now, pto);
        }
        path.counters.packets_sent += 1;
    }
}
