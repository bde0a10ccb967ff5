//! Receive path: datagram, packets, frames.

use marline_wire::frame::Frames;
use marline_wire::packet::{self, Packet, ProtectedHeader, ProtectedKind};
use marline_wire::{ConnectionId, ErrorCode, TransportError};

use super::Connection;
use super::events::ConnectionError;
use super::telemetry::DroppedPacket;
use crate::ack::{AckDecision, ReceivedView};
use crate::crypto::{KeyChange, OpenError};
use crate::establish::PacketContext;
use crate::level::{EncryptionLevel, SpaceId};
use crate::observe::Event;
use crate::observe::events::{DropTrigger, Ecn, PacketReceived};
use crate::paths::{PacketPath, Slot};
use crate::time::Instant;
use crate::tuple::{Arrival, EcnCodepoint, FourTuple};

/// A packet whose protection is removed, for the modules that handle its frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedPacket {
    pub(super) arrival: Arrival,
    pub(super) path: Slot,
    pub(super) space: SpaceId,
    pub(super) kind: ProtectedKind,
    pub(super) dcid: ConnectionId,
    pub(super) number: u64,
    /// Generation of the 1-RTT keys that protected it; 0 at other levels.
    pub(super) generation: u64,
}

impl Connection {
    /// Processes a datagram that the endpoint routed here; decrypts it in place.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        ecn: Option<EcnCodepoint>,
        datagram: &mut [u8],
    ) {
        self.telemetry.counters.datagrams_received += 1;
        self.telemetry.counters.bytes_received += datagram.len() as u64;
        if !self.lifecycle.is_open() {
            self.on_datagram_while_closing(datagram);
            return;
        }
        let arrival = Arrival {
            tuple,
            ecn,
            datagram: datagram.len(),
        };
        if !self.count_for_amplification(&arrival, datagram) {
            return;
        }
        self.handle_packets(now, arrival, datagram);
        while let Some(mut deferred) = self.establishment.take_openable() {
            self.handle_packet(
                now,
                deferred.arrival,
                &deferred.header,
                &mut deferred.packet,
            );
        }
        self.after_input(now);
    }

    /// Counts a datagram for the amplification limit of its 4-tuple; `false` if it is to be dropped.
    fn count_for_amplification(&mut self, arrival: &Arrival, datagram: &[u8]) -> bool {
        let bytes = arrival.datagram as u64;
        let Some(at) = self.path_of(datagram) else {
            return self.may_come_from(&arrival.tuple);
        };
        let path = &mut self.paths[at];
        path.counters.received.count(arrival.datagram);
        let active = &mut path.tuples.active;
        if active.addresses == arrival.tuple {
            active.amplification.on_received(bytes);
            return true;
        }
        if let Some(known) = path.tuples.find(&arrival.tuple) {
            known.amplification.on_received(bytes);
            return true;
        }
        self.may_come_from(&arrival.tuple)
    }

    /// The path that a datagram belongs to, by its destination connection ID.
    pub(super) fn path_of(&self, datagram: &[u8]) -> Option<Slot> {
        if !self.is_multipath() {
            return Some(Slot::FIRST);
        }
        let destination =
            packet::destination(datagram, self.establishment.progress().local_cid().len())?;
        self.paths.by_destination(&ConnectionId::new(destination)?)
    }

    /// The path to which a packet belongs.
    fn packet_path(&self, header: &ProtectedHeader) -> PacketPath {
        if header.kind != ProtectedKind::Short {
            return PacketPath::Known(Slot::FIRST);
        }
        self.paths.packet_path(&header.dcid, self.accepts_paths())
    }

    /// Splits a datagram into its packets (RFC 9000, section 12.2).
    fn handle_packets(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        let cid_len = self.establishment.progress().local_cid().len();
        let mut rest = datagram;
        let mut first: Option<ConnectionId> = None;
        while !rest.is_empty() && self.lifecycle.is_open() {
            let header = match packet::parse(rest, cid_len, self.endpoint.grease_fixed_bit) {
                Ok(Packet::Protected(header)) => header,
                Ok(Packet::VersionNegotiation(offer)) => {
                    return self.on_version_negotiation(now, &offer);
                }
                Ok(Packet::Retry(retry)) => return self.on_retry(now, &retry),
                Ok(Packet::UnsupportedVersion { .. }) | Err(_) => {
                    let dropped = DroppedPacket {
                        path: self.paths.only(),
                        level: None,
                        size: rest.len(),
                    };
                    self.telemetry
                        .report_dropped(now, dropped, DropTrigger::Invalid);
                    return;
                }
            };
            let (packet, tail) = rest.split_at_mut(header.len);
            rest = tail;
            // Most datagrams contain a single packet.
            if first.is_some_and(|first| first != header.dcid) {
                continue;
            }
            if !rest.is_empty() {
                first = Some(header.dcid);
            }
            self.handle_packet(now, arrival, &header, packet);
        }
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        arrival: Arrival,
        header: &ProtectedHeader,
        packet: &mut [u8],
    ) {
        let level = EncryptionLevel::from(header.kind);
        let mut dropped = DroppedPacket {
            path: self.paths.only(),
            level: Some(level),
            size: packet.len(),
        };
        if let Some(trigger) = self.establishment.refuse(header, &arrival, packet) {
            self.telemetry.report_dropped(now, dropped, trigger);
            return;
        }
        if !self.establishment.may_open(level) {
            if !self.establishment.defer(now, arrival, level, packet) {
                self.telemetry
                    .report_dropped(now, dropped, DropTrigger::KeyUnavailable);
            }
            return;
        }
        let reset_token = packet.last_chunk().copied();
        let packet_path = self.packet_path(header);
        let context = match packet_path {
            PacketPath::Known(at) => PacketContext {
                path: self.paths[at].id,
                largest: self.largest_received(at, level.space()),
            },
            PacketPath::New(path) => PacketContext {
                path,
                largest: None,
            },
            PacketPath::None => {
                self.telemetry
                    .report_dropped(now, dropped, DropTrigger::General);
                return;
            }
        };
        dropped.path = Some(context.path);
        match self.establishment.unseal(context, header, packet) {
            Ok(unsealed) => {
                let number = unsealed.number;
                let space = level.space();
                let at = match packet_path {
                    PacketPath::Known(at) => Some(at),
                    PacketPath::New(id) => self.accept_path(now, id, header.dcid, &arrival),
                    PacketPath::None => None,
                };
                let Some(at) = at else { return };
                let received = ReceivedPacket {
                    arrival,
                    path: at,
                    space,
                    kind: header.kind,
                    dcid: header.dcid,
                    number,
                    generation: unsealed.generation,
                };
                if self.is_duplicate(at, space, number) {
                    self.telemetry
                        .report_dropped(now, dropped, DropTrigger::Duplicate);
                    return;
                }
                if self.telemetry.observer.is_some() {
                    let is_newest = context.largest.is_none_or(|largest| number > largest);
                    self.report_received(now, &received, unsealed.payload, dropped.size);
                    if header.kind == ProtectedKind::Short && is_newest {
                        self.telemetry
                            .report_local_id(now, &self.paths[at], header.dcid);
                    }
                }
                let outcome = unsealed
                    .unprotected
                    .check_reserved_bits()
                    .and_then(|()| self.on_key_change(now, unsealed.change))
                    .and_then(|()| self.on_packet(now, &received, header, unsealed.payload));
                if let Err(error) = outcome {
                    self.fail(now, error);
                }
            }
            Err(OpenError::Fatal(error)) => self.fail(now, error),
            Err(OpenError::TooShort | OpenError::Unauthentic) => {
                let is_reset = header.kind == ProtectedKind::Short
                    && reset_token.is_some_and(|token| self.is_reset_token(&token));
                if is_reset {
                    self.end_silently(now, ConnectionError::Reset);
                } else {
                    self.telemetry
                        .report_dropped(now, dropped, DropTrigger::DecryptionFailure);
                }
            }
        }
    }

    #[cold]
    fn report_received(
        &mut self,
        now: Instant,
        packet: &ReceivedPacket,
        payload: &[u8],
        size: usize,
    ) {
        let event = PacketReceived {
            path: self.paths[packet.path].id,
            kind: EncryptionLevel::from(packet.kind).into(),
            number: Some(packet.number),
            size,
            payload,
            ecn: Ecn::of(packet.arrival.ecn),
            datagram: self.telemetry.counters.datagrams_received as u32,
        };
        self.telemetry.emit(now, &Event::PacketReceived(event));
    }

    /// The largest packet number received in a space of a path.
    fn largest_received(&self, at: Slot, space: SpaceId) -> Option<u64> {
        match space {
            SpaceId::Data => self.paths[at].space.received.largest(),
            handshake => self.establishment.space(handshake)?.received.largest(),
        }
    }

    fn is_duplicate(&self, at: Slot, space: SpaceId, number: u64) -> bool {
        match space {
            SpaceId::Data => self.paths[at].space.received.is_duplicate(number),
            handshake => self
                .establishment
                .space(handshake)
                .is_none_or(|space| space.received.is_duplicate(number)),
        }
    }

    /// Handles an authenticated packet that is not a duplicate.
    fn on_packet(
        &mut self,
        now: Instant,
        packet: &ReceivedPacket,
        header: &ProtectedHeader,
        payload: &[u8],
    ) -> Result<(), TransportError> {
        if !self.accept_source(header) {
            return Ok(());
        }
        if payload.is_empty() {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a packet without frames",
            ));
        }
        self.telemetry.counters.packets_received += 1;
        self.establishment.on_packet_opened(header);
        if packet.space == SpaceId::Handshake && self.side.is_server() {
            let active = &mut self.paths[packet.path].tuples.active;
            active.amplification.on_validated();
            self.discard_keys(now, SpaceId::Initial);
        }
        let (mut ack_eliciting, mut probing) = (false, true);
        for frame in Frames::new(payload) {
            // By reference: a frame is large, and moving it out of the result copies it.
            let frame = match &frame {
                Ok(frame) => frame,
                Err(error) => return Err(self.frame_error(*error)),
            };
            ack_eliciting |= frame.is_ack_eliciting();
            probing &= frame.is_probing();
            self.dispatch(now, packet, frame)?;
            if !self.lifecycle.is_open() {
                return Ok(());
            }
        }
        let is_newest = self.record_received(now, packet, ack_eliciting);
        self.telemetry.report_reassembly(now, &self.streams);
        self.paths.on_received(now, packet.path);
        if packet.space == SpaceId::Data && !probing {
            self.follow_peer(now, packet, is_newest);
        }
        let received = self.streams.received_bytes();
        self.idle.on_received(now, self.pto() * 3, received);
        self.drive_handshake(now)
    }

    /// Records the packet as received and decides when to acknowledge it; returns whether it has the largest
    /// number of the application data space of its path.
    fn record_received(
        &mut self,
        now: Instant,
        packet: &ReceivedPacket,
        ack_eliciting: bool,
    ) -> bool {
        let ReceivedPacket {
            number, arrival, ..
        } = *packet;
        if packet.space != SpaceId::Data {
            if let Some(space) = self.establishment.space_mut(packet.space) {
                space
                    .received
                    .on_packet(now, number, ack_eliciting, arrival.ecn);
                if ack_eliciting {
                    space.acknowledge_by(now);
                }
            }
            return false;
        }
        let path = &mut self.paths[packet.path];
        let received = &mut path.space.received;
        let is_newest = received.largest().is_none_or(|largest| number > largest);
        let out_of_order = received.on_packet(now, number, ack_eliciting, arrival.ecn);
        if !ack_eliciting {
            return is_newest;
        }
        let view = ReceivedView {
            now,
            number,
            largest: received.largest_eliciting().unwrap_or(number),
            largest_acked: received.largest_reported(),
            smallest_missing: received.smallest_missing(path.ack_policy.reordering_threshold()),
            unacked: received.unacked(),
            oldest_unacked_at: received.oldest_unacked_at().unwrap_or(now),
            total_received: received.total(),
            out_of_order,
            ce: arrival.ecn == Some(EcnCodepoint::Ce),
            min_rtt: path.recovery.rtt().min(),
        };
        match path.ack_policy.on_packet(&view) {
            AckDecision::Now => path.space.acknowledge_by(now),
            AckDecision::By(deadline) => path.space.acknowledge_by(deadline),
            AckDecision::NotNeeded => {}
        }
        is_newest
    }

    fn on_key_change(
        &mut self,
        now: Instant,
        change: Option<KeyChange>,
    ) -> Result<(), TransportError> {
        let Some(change) = change else { return Ok(()) };
        let expiry = now + self.pto() * 3;
        if let Some(keys) = self.establishment.one_rtt_mut() {
            keys.expire_previous_at(expiry);
        }
        self.telemetry
            .report_key_change(now, &self.establishment, change);
        Ok(())
    }
}
