//! The road in: datagram, packets, frames.

use marline_wire::frame::Frames;
use marline_wire::packet::{self, Packet, ProtectedHeader, ProtectedKind};
use marline_wire::{ConnectionId, ErrorCode, PathId, Side, TransportError};

use super::Connection;
use super::events::ConnectionError;
use crate::ack::{AckDecision, ReceivedView};
use crate::crypto::{self, KeyChange, OpenError, Unprotected};
use crate::level::SpaceId;
use crate::limits::{MAX_UNDECRYPTABLE_PACKETS, MIN_DATAGRAM_SIZE};
use crate::observe::Event;
use crate::observe::events::{DropTrigger, Ecn, PacketDropped, PacketKind, PacketReceived};
use crate::paths::{Owner, Slot};
use crate::time::Instant;
use crate::tuple::{EcnCodepoint, FourTuple};

/// How a packet came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) tuple: FourTuple,
    pub(super) ecn: Option<EcnCodepoint>,
    /// Length of the whole datagram, in bytes.
    pub(super) datagram: usize,
}

/// A packet whose keys are not here yet.
#[derive(Debug)]
pub(super) struct Deferred {
    arrival: Arrival,
    packet: Box<[u8]>,
}

/// An opened packet, for those who handle its frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    pub(super) arrival: Arrival,
    pub(super) path: Slot,
    pub(super) space: SpaceId,
    pub(super) kind: ProtectedKind,
    pub(super) dcid: ConnectionId,
    pub(super) number: u64,
    /// Generation of the 1-RTT keys that opened it.
    pub(super) generation: u64,
}

impl Connection {
    /// Takes a datagram that the endpoint routed here; decrypts it in place.
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
            self.on_late_datagram(datagram);
            return;
        }
        let arrival = Arrival {
            tuple,
            ecn,
            datagram: datagram.len(),
        };
        if !self.credit_sender(&arrival, datagram) {
            return;
        }
        self.handle_packets(now, arrival, datagram);
        self.retry_deferred(now);
        self.after_input(now);
    }

    /// Counts a datagram for its 4-tuple; `false` if nothing may come from there.
    fn credit_sender(&mut self, arrival: &Arrival, datagram: &[u8]) -> bool {
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

    /// The path that a datagram came on, if it is open.
    pub(super) fn path_of(&self, datagram: &[u8]) -> Option<Slot> {
        if !self.is_multipath() {
            return Some(Slot::FIRST);
        }
        let destination = packet::destination(datagram, self.progress.local_cid().len())?;
        self.paths.by_destination(&ConnectionId::new(destination)?)
    }

    /// Whose a packet is.
    fn owner(&self, header: &ProtectedHeader) -> Owner {
        if header.kind != ProtectedKind::Short {
            return Owner::Path(Slot::FIRST);
        }
        self.paths.owner(&header.dcid, self.accepts_paths())
    }

    /// Splits a datagram into its packets (RFC 9000, section 12.2).
    fn handle_packets(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        let cid_len = self.progress.local_cid().len();
        let mut rest = datagram;
        let mut first: Option<ConnectionId> = None;
        while !rest.is_empty() && self.lifecycle.is_open() {
            let header = match packet::parse(rest, cid_len, self.endpoint.grease_fixed_bit) {
                Ok(Packet::Protected(header)) => header,
                Ok(Packet::VersionNegotiation(offer)) => {
                    let speaks_ours = offer.versions().any(|version| version == self.version);
                    let for_us = offer.dcid == &*self.progress.local_cid()
                        && offer.scid == &*self.progress.original_destination();
                    if for_us && !speaks_ours && self.progress.is_untouched_client() {
                        self.report_offered_versions(now, offer.versions());
                        self.die(now, ConnectionError::VersionMismatch);
                    }
                    return;
                }
                Ok(Packet::Retry(retry)) => return self.on_retry(&retry),
                Ok(Packet::UnsupportedVersion { .. }) | Err(_) => {
                    self.tell_dropped(
                        now,
                        None,
                        (PacketKind::Unknown, rest.len()),
                        DropTrigger::Invalid,
                    );
                    return;
                }
            };
            let (packet, tail) = rest.split_at_mut(header.len);
            rest = tail;
            if *first.get_or_insert(header.dcid) == header.dcid {
                self.handle_packet(now, arrival, &header, packet);
            }
        }
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        arrival: Arrival,
        header: &ProtectedHeader,
        packet: &mut [u8],
    ) {
        let kind = packet_kind(header.kind);
        if self.is_misshapen_initial(header, arrival, packet) {
            self.tell_dropped(now, None, (kind, packet.len()), DropTrigger::Invalid);
            return;
        }
        if !self.may_open(header.kind) {
            self.defer(now, arrival, header, packet);
            return;
        }
        let reset_token = packet.last_chunk().copied();
        let size = packet.len();
        let owner = self.owner(header);
        let (path_id, largest) = match owner {
            Owner::Path(at) => {
                let path = &self.paths[at];
                (path.id, path.space.received.largest())
            }
            Owner::Opens(id) => (id, None),
            Owner::Nobody => {
                self.tell_dropped(now, None, (kind, size), DropTrigger::General);
                return;
            }
        };
        match self.unseal((path_id, largest), header, packet) {
            Ok((unprotected, number, payload, generation, change)) => {
                let space = space_of(header.kind);
                let at = match owner {
                    Owner::Path(at) => Some(at),
                    Owner::Opens(id) => self.accept_path(now, id, header.dcid, &arrival),
                    Owner::Nobody => None,
                };
                let Some(at) = at else { return };
                let opened = Opened {
                    arrival,
                    path: at,
                    space,
                    kind: header.kind,
                    dcid: header.dcid,
                    number,
                    generation,
                };
                if self.is_duplicate(at, space, number) {
                    self.tell_dropped(now, Some(path_id), (kind, size), DropTrigger::Duplicate);
                    return;
                }
                if let Some(observer) = &mut self.telemetry.observer {
                    let event = PacketReceived {
                        path: self.paths[at].id,
                        kind,
                        number: Some(number),
                        size,
                        payload,
                        ecn: ecn_of(arrival.ecn),
                        datagram: self.telemetry.counters.datagrams_received as u32,
                    };
                    observer.on_event(now, &Event::PacketReceived(event));
                    let is_newest = largest.is_none_or(|largest| number > largest);
                    if header.kind == ProtectedKind::Short && is_newest {
                        self.report_local_id(now, at, header.dcid);
                    }
                }
                let outcome = unprotected
                    .check_reserved_bits()
                    .and_then(|()| self.on_key_change(now, change))
                    .and_then(|()| self.on_packet(now, &opened, header, payload));
                if let Err(error) = outcome {
                    self.fail(now, error);
                }
            }
            Err(OpenError::Fatal(error)) => self.fail(now, error),
            Err(OpenError::TooShort | OpenError::Unauthentic) => {
                let is_reset = header.kind == ProtectedKind::Short
                    && reset_token.is_some_and(|token| self.is_reset_token(&token));
                if is_reset {
                    self.die(now, ConnectionError::Reset);
                } else {
                    self.tell_dropped(
                        now,
                        Some(path_id),
                        (kind, size),
                        DropTrigger::DecryptionFailure,
                    );
                }
            }
        }
    }

    /// Whether this is an Initial packet that must be discarded unopened: in a small datagram from a
    /// client (RFC 9000, section 14.1), with a token from a server (section 17.2.2).
    fn is_misshapen_initial(
        &self,
        header: &ProtectedHeader,
        arrival: Arrival,
        packet: &[u8],
    ) -> bool {
        matches!(header.kind, ProtectedKind::Initial { .. })
            && match self.side {
                Side::Server => arrival.datagram < usize::from(MIN_DATAGRAM_SIZE),
                Side::Client => !header.token(packet).is_empty(),
            }
    }

    /// Whether the keys for packets of this kind exist and may be used by now. A server leaves 1-RTT
    /// packets alone until the handshake is complete (RFC 9001, section 5.7).
    fn may_open(&self, kind: ProtectedKind) -> bool {
        let too_early = kind == ProtectedKind::Short
            && self.side.is_server()
            && self.handshake.is_handshaking();
        self.keys.has_opening(kind)
            && !too_early
            && (kind != ProtectedKind::ZeroRtt || self.side.is_server())
    }

    fn defer(
        &mut self,
        now: Instant,
        arrival: Arrival,
        header: &ProtectedHeader,
        packet: &mut [u8],
    ) {
        let may_come = match header.kind {
            ProtectedKind::Initial { .. } => false,
            ProtectedKind::ZeroRtt => self.side.is_server() && self.handshake.is_handshaking(),
            ProtectedKind::Handshake => self.keys.initial.is_some(),
            ProtectedKind::Short => self.handshake.is_handshaking(),
        };
        if may_come && self.deferred.len() < MAX_UNDECRYPTABLE_PACKETS {
            self.deferred.push(Deferred {
                arrival,
                packet: packet.into(),
            });
        } else {
            let kind = packet_kind(header.kind);
            self.tell_dropped(now, None, (kind, packet.len()), DropTrigger::KeyUnavailable);
        }
    }

    /// Packets that waited for keys which are here now.
    fn retry_deferred(&mut self, now: Instant) {
        let cid_len = self.progress.local_cid().len();
        let mut index = 0;
        while index < self.deferred.len() {
            let parsed = packet::parse(&self.deferred[index].packet, cid_len, true);
            let Ok(Packet::Protected(header)) = parsed else {
                self.deferred.remove(index);
                continue;
            };
            if self.may_open(header.kind) {
                let Deferred {
                    arrival,
                    mut packet,
                } = self.deferred.remove(index);
                self.handle_packet(now, arrival, &header, &mut packet);
                index = 0;
            } else {
                index += 1;
            }
        }
    }

    /// Removes protection in place.
    #[expect(clippy::type_complexity, reason = "used once, taken apart at once")]
    fn unseal<'a>(
        &mut self,
        (path_id, largest): (PathId, Option<u64>),
        header: &ProtectedHeader,
        packet: &'a mut [u8],
    ) -> Result<(Unprotected, u64, &'a [u8], u64, Option<KeyChange>), OpenError> {
        let offset = header.number_offset;
        let largest = match space_of(header.kind) {
            SpaceId::Data => largest,
            early => self
                .early
                .get(early)
                .and_then(|space| space.received.largest()),
        };
        let number_of = |unprotected: &Unprotected| {
            packet::expand(largest, unprotected.truncated, unprotected.number_len)
        };
        let early = match header.kind {
            ProtectedKind::Short => {
                let keys = self.keys.one_rtt.as_mut().ok_or(OpenError::Unauthentic)?;
                let unprotected = keys.unprotect(packet, offset)?;
                let number = number_of(&unprotected);
                let payload_offset = offset + unprotected.number_len;
                let incoming = crypto::OneRttPacket {
                    path_id,
                    number,
                    largest_received: largest,
                    first_byte: unprotected.first_byte,
                    payload_offset,
                };
                let opened = keys.open(incoming, packet)?;
                return Ok((
                    unprotected,
                    number,
                    opened.payload,
                    opened.generation,
                    opened.change,
                ));
            }
            ProtectedKind::Initial { .. } => self.keys.initial.as_ref().map(|keys| &keys.remote),
            ProtectedKind::Handshake => self.keys.handshake.as_ref().map(|keys| &keys.remote),
            ProtectedKind::ZeroRtt => self.keys.zero_rtt.as_deref(),
        };
        let keys = early.ok_or(OpenError::Unauthentic)?;
        let unprotected = crypto::unprotect(&*keys.header, packet, offset)?;
        let number = number_of(&unprotected);
        let payload_offset = offset + unprotected.number_len;
        let payload = crypto::open(
            &*keys.packet,
            PathId::INITIAL,
            number,
            packet,
            payload_offset,
        )?;
        Ok((unprotected, number, payload, 0, None))
    }

    fn is_duplicate(&self, at: Slot, space: SpaceId, number: u64) -> bool {
        match space {
            SpaceId::Data => self.paths[at].space.received.is_duplicate(number),
            early => self
                .early
                .get(early)
                .is_none_or(|space| space.received.is_duplicate(number)),
        }
    }

    /// An authentic packet that was not here before.
    fn on_packet(
        &mut self,
        now: Instant,
        opened: &Opened,
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
        self.progress.on_packet_opened();
        if opened.space == SpaceId::Handshake && self.side.is_server() {
            let active = &mut self.paths[opened.path].tuples.active;
            active.amplification.on_validated();
            self.discard_keys(now, SpaceId::Initial);
        }
        let (mut ack_eliciting, mut probing) = (false, true);
        for frame in Frames::new(payload) {
            let frame = frame?;
            ack_eliciting |= frame.is_ack_eliciting();
            probing &= frame.is_probing();
            self.dispatch(now, opened, &frame)?;
            if !self.lifecycle.is_open() {
                return Ok(());
            }
        }
        let is_newest = self.note_received(now, opened, ack_eliciting);
        self.tell_reassembly(now);
        self.paths.on_received(now, opened.path);
        if opened.space == SpaceId::Data && !probing {
            self.follow_peer(now, opened, is_newest);
        }
        self.idle.on_received(now, self.pto() * 3);
        self.drive_handshake(now)
    }

    /// Records the packet and decides when to acknowledge it; returns whether it is one of application data
    /// with the largest number of its path so far.
    fn note_received(&mut self, now: Instant, opened: &Opened, ack_eliciting: bool) -> bool {
        let Opened {
            number, arrival, ..
        } = *opened;
        if opened.space != SpaceId::Data {
            if let Some(space) = self.early.get_mut(opened.space) {
                space
                    .received
                    .on_packet(now, number, ack_eliciting, arrival.ecn);
                if ack_eliciting {
                    space.acknowledge_by(now);
                }
            }
            return false;
        }
        let path = &mut self.paths[opened.path];
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
        if let Some(keys) = &mut self.keys.one_rtt {
            keys.expire_previous_at(expiry);
        }
        self.tell_key_update(now, change);
        Ok(())
    }

    fn tell_dropped(
        &mut self,
        now: Instant,
        path: Option<PathId>,
        (kind, size): (PacketKind, usize),
        trigger: DropTrigger,
    ) {
        self.telemetry.counters.packets_dropped += 1;
        if let Some(observer) = &mut self.telemetry.observer {
            let is_only = !self.paths.is_multipath();
            let path = path.or_else(|| is_only.then_some(PathId::INITIAL));
            let event = PacketDropped {
                path,
                kind,
                size,
                trigger,
            };
            observer.on_event(now, &Event::PacketDropped(event));
        }
    }
}

fn ecn_of(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

const fn space_of(kind: ProtectedKind) -> SpaceId {
    match kind {
        ProtectedKind::Initial { .. } => SpaceId::Initial,
        ProtectedKind::Handshake => SpaceId::Handshake,
        ProtectedKind::ZeroRtt | ProtectedKind::Short => SpaceId::Data,
    }
}

const fn packet_kind(kind: ProtectedKind) -> PacketKind {
    match kind {
        ProtectedKind::Initial { .. } => PacketKind::Initial,
        ProtectedKind::Handshake => PacketKind::Handshake,
        ProtectedKind::ZeroRtt => PacketKind::ZeroRtt,
        ProtectedKind::Short => PacketKind::OneRtt,
    }
}
