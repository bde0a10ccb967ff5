//! One packet from header to seal.

use marline_wire::packet::{
    LongHeader, LongType, ShortHeader, TruncatedNumber, patch_length, truncate,
};
use marline_wire::{ConnectionId, TransportError, frame, varint};

use super::Connection;
use crate::crypto::{self, Sealing, TAG_LEN};
use crate::level::SpaceId;
use crate::observe::Event;
use crate::observe::events::{Ecn, PacketKind, PacketSent};
use crate::paths::Slot;
use crate::recovery::Departure;
use crate::time::Instant;

/// The shortest packet number and payload that leave something to sample (RFC 9001, section 5.4.2).
const MIN_NUMBER_AND_PAYLOAD: usize = 4;

/// The least room, in bytes, in which a packet is begun: header, tag and a frame or two.
pub(super) const MIN_PACKET_ROOM: usize = 112;

/// A packet under construction at the end of the buffer.
#[derive(Debug)]
pub(super) struct OpenPacket {
    pub(super) path: Slot,
    pub(super) space: SpaceId,
    pub(super) kind: PacketKind,
    number: u64,
    start: usize,
    number_offset: usize,
    pub(super) payload_offset: usize,
    /// Where the Length field of a long header stands.
    length_offset: Option<usize>,
    /// The length of the buffer that frames must not exceed.
    pub(super) limit: usize,
    pub(super) ack_eliciting: bool,
    pub(super) padded: bool,
    /// Whether its datagram must have at least 1200 bytes.
    pub(super) wants_full: bool,
    pub(super) mtu_probe: bool,
}

impl OpenPacket {
    pub(super) fn is_empty(&self, buf: &[u8]) -> bool {
        buf.len() == self.payload_offset
    }
}

/// What all packets of one datagram share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) path: Slot,
    /// Length of the buffer that the datagram must not exceed.
    pub(super) end: usize,
    /// Whether the datagram is marked ECT(0).
    pub(super) ecn: bool,
    /// Generation of the 4-tuple that it takes.
    pub(super) tuple: u32,
    /// Destination connection ID.
    pub(super) dcid: ConnectionId,
}

impl Connection {
    /// The kind of packet that the space would send now; `None` without keys.
    pub(super) fn sealing_kind(&self, space: SpaceId) -> Option<PacketKind> {
        match space {
            SpaceId::Initial => self.keys.initial.as_ref().map(|_| PacketKind::Initial),
            SpaceId::Handshake => self.keys.handshake.as_ref().map(|_| PacketKind::Handshake),
            SpaceId::Data if self.keys.one_rtt.is_some() => Some(PacketKind::OneRtt),
            SpaceId::Data if self.side.is_client() && self.keys.zero_rtt.is_some() => {
                Some(PacketKind::ZeroRtt)
            }
            SpaceId::Data => None,
        }
    }

    /// Writes the header of a new packet.
    ///
    /// # Errors
    ///
    /// AEAD_LIMIT_REACHED if the keys may seal no more.
    pub(super) fn begin_packet(
        &mut self,
        now: Instant,
        space: SpaceId,
        kind: PacketKind,
        envelope: &Envelope,
        buf: &mut Vec<u8>,
    ) -> Result<OpenPacket, TransportError> {
        let start = buf.len();
        let clear_fixed_bit = self.peer.grease_fixed_bit && self.rng.bit();
        let key_phase = match (&mut self.keys.one_rtt, kind) {
            (Some(keys), PacketKind::OneRtt) => keys.next_key_phase()?,
            _ => false,
        };
        let at = envelope.path;
        let path = &mut self.paths[at];
        if space == SpaceId::Data && path.space.sent.next_number() == path.skip_at {
            path.space.sent.skip(now);
            path.skip_at = self.rng.next_skip(path.skip_at);
        }
        let (number, truncated) = self.next_number(at, space);
        let (number_offset, payload_offset, length_offset) = if kind == PacketKind::OneRtt {
            let header = ShortHeader {
                dcid: envelope.dcid,
                spin: self.rng.spin(),
                key_phase,
            };
            let end = header.encode(truncated, clear_fixed_bit, buf);
            (end.number_offset, end.payload_offset, None)
        } else {
            let kind = match kind {
                PacketKind::Initial => LongType::Initial,
                PacketKind::ZeroRtt => LongType::ZeroRtt,
                _ => LongType::Handshake,
            };
            let token = if kind == LongType::Initial {
                self.progress.initial_token()
            } else {
                &[]
            };
            let header = LongHeader {
                kind,
                version: self.version,
                dcid: envelope.dcid,
                scid: self.progress.local_cid(),
                token,
            };
            let end = header.encode(truncated, clear_fixed_bit, buf);
            (
                end.number_offset,
                end.payload_offset,
                Some(end.length_offset),
            )
        };
        Ok(OpenPacket {
            path: at,
            space,
            kind,
            number,
            start,
            number_offset,
            payload_offset,
            length_offset,
            limit: envelope.end.saturating_sub(TAG_LEN),
            ack_eliciting: false,
            padded: false,
            wants_full: false,
            mtu_probe: false,
        })
    }

    fn next_number(&self, at: Slot, space: SpaceId) -> (u64, TruncatedNumber) {
        let sent = match space {
            SpaceId::Data => &self.paths[at].space.sent,
            early => match self.early.get(early) {
                Some(space) => &space.sent,
                None => return (0, truncate(0, None)),
            },
        };
        let number = sent.next_number();
        (number, truncate(number, sent.largest_acked()))
    }

    /// Drops a packet that stayed empty.
    pub(super) fn abandon_packet(packet: &OpenPacket, buf: &mut Vec<u8>) {
        buf.truncate(packet.start);
    }

    /// Pads the packet so that the buffer reaches `until`, tag included, if it is shorter.
    pub(super) fn pad_packet(packet: &mut OpenPacket, until: usize, buf: &mut Vec<u8>) {
        let target = until.saturating_sub(TAG_LEN);
        if buf.len() < target {
            buf.resize(target, frame::PADDING as u8);
            packet.padded = true;
        }
    }

    /// Seals the packet and remembers it.
    pub(super) fn finish_packet(
        &mut self,
        now: Instant,
        mut packet: OpenPacket,
        envelope: &Envelope,
        buf: &mut Vec<u8>,
    ) {
        let shortest = packet.number_offset + MIN_NUMBER_AND_PAYLOAD + TAG_LEN;
        Self::pad_packet(&mut packet, shortest, buf);
        if let Some(length_offset) = packet.length_offset {
            let length = buf.len() + TAG_LEN - packet.number_offset;
            patch_length(buf, length_offset, length);
        }
        let size = buf.len() + TAG_LEN - packet.start;
        let path_id = self.paths[packet.path].id;
        if let Some(observer) = &mut self.telemetry.observer {
            let event = PacketSent {
                path: path_id,
                kind: packet.kind,
                number: Some(packet.number),
                size,
                payload: &buf[packet.payload_offset..],
                ecn: if envelope.ecn { Ecn::Ect0 } else { Ecn::NotEct },
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
            number_offset: packet.number_offset,
            payload_offset: packet.payload_offset,
        };
        match packet.kind {
            PacketKind::OneRtt => {
                if let Some(keys) = &mut self.keys.one_rtt {
                    keys.seal(sealing, buf);
                }
            }
            PacketKind::ZeroRtt => {
                if let Some(keys) = &self.keys.zero_rtt {
                    crypto::seal(keys, sealing, buf);
                }
            }
            _ => {
                if let Some(keys) = self.keys.early(packet.space) {
                    crypto::seal(&keys.local, sealing, buf);
                }
            }
        }
        self.remember(now, &packet, envelope, size);
        if packet.kind == PacketKind::Handshake && self.side.is_client() {
            // RFC 9001, section 4.9.1: whoever can send this needs no Initial packets.
            self.discard_keys(now, SpaceId::Initial);
        }
    }

    /// Has the packet counted: by its space, by recovery, and by whatever else waits for packets that leave.
    fn remember(&mut self, now: Instant, packet: &OpenPacket, envelope: &Envelope, size: usize) {
        let path = &mut self.paths[packet.path];
        let space = match packet.space {
            SpaceId::Data => &mut path.space,
            early => match self.early.get_mut(early) {
                Some(space) => space,
                None => return,
            },
        };
        let departure = Departure {
            space: packet.space,
            size: size as u16,
            ack_eliciting: packet.ack_eliciting,
            in_flight: packet.ack_eliciting || packet.padded,
            ecn: envelope.ecn,
            mtu_probe: packet.mtu_probe,
            tuple: envelope.tuple,
        };
        debug_assert_eq!(space.sent.next_number(), packet.number);
        let counted = path.recovery.on_sent(now, &departure, &mut space.sent);
        if packet.ack_eliciting {
            self.idle.on_sent(now);
            path.acks_alone = 0;
            if packet.space == SpaceId::Data && !packet.mtu_probe {
                path.liveness.on_sent(now);
            }
        } else {
            path.acks_alone += 1;
        }
        if let Some(sample) = counted
            && packet.space == SpaceId::Data
        {
            path.drive_resumption(|engine| engine.on_sent(now, &sample));
        }
        if envelope.ecn {
            let pto = path.recovery.pto(self.peer.max_ack_delay);
            let ledger = &mut path.ledgers[packet.space as usize];
            path.tuples.active.ecn.on_sent(ledger, now, pto);
        }
        path.counters.packets_sent += 1;
    }

    /// Appends a PING.
    pub(super) fn write_ping(packet: &mut OpenPacket, buf: &mut Vec<u8>) {
        if buf.len() < packet.limit {
            varint::encode(frame::PING, buf);
            packet.ack_eliciting = true;
        }
    }
}
