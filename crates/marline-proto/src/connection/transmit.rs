//! The road out: datagrams from what the rooms want to say.
//!
//! A call fills one batch for one 4-tuple. Order: closing, path probes, then the main road, whose
//! packets [`super::fill`] fills from the rooms, and last a probe for larger datagrams.

use marline_wire::TransportError;

use super::Connection;
use super::packet::{Envelope, MIN_PACKET_ROOM, OpenPacket};
use crate::level::SpaceId;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::observe::events::PacketKind;
use crate::paths::Slot;
use crate::paths::Stage;
use crate::time::Instant;
use crate::tuple::{EcnCodepoint, FourTuple, Transmit};

/// What may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Anything.
    All,
    /// Only what is not congestion controlled: ACK frames alone.
    AcksOnly,
}

impl Connection {
    /// Appends the next datagrams to `buf`, up to `max_datagrams` of one size for one destination.
    ///
    /// Call it after every other call that took `now`, until it returns `None`; clear `buf` in
    /// between.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_datagrams: usize,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        if let Some(transmit) = self.transmit_path_probe(now, buf) {
            return Some(transmit);
        }
        let outcome = self.transmit_any(now, max_datagrams.max(1), buf);
        self.settle_resume(now);
        self.set_loss_timers(now);
        if matches!(outcome, Ok(None)) {
            // Once for each burst, not for each datagram.
            self.report_changes(now);
        }
        match outcome {
            Ok(transmit) => transmit,
            Err(error) => {
                self.fail(now, error);
                self.transmit_close(now, buf)
            }
        }
    }

    /// A batch of the first path that has something to say.
    fn transmit_any(
        &mut self,
        now: Instant,
        max_datagrams: usize,
        buf: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        for at in self.paths.slots() {
            if self.paths[at].stage != Stage::Open {
                continue;
            }
            let batch = self.transmit_batch(now, at, max_datagrams, buf)?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
        if let Some(at) = self.reinject(now) {
            let batch = self.transmit_batch(now, at, max_datagrams, buf)?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
        for at in self.paths.slots() {
            let probe = self.transmit_mtu_probe(now, at, buf)?;
            if probe.is_some() {
                return Ok(probe);
            }
        }
        Ok(None)
    }

    /// As many datagrams of a path as its window, its pacer and what there is to say allow.
    fn transmit_batch(
        &mut self,
        now: Instant,
        at: Slot,
        max_datagrams: usize,
        buf: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let start = buf.len();
        let mtu = self.datagram_size(at);
        let ecn = self.config.ecn && self.paths[at].tuples.active.ecn.marks(now);
        let mut segment_size = None;
        for _ in 0..max_datagrams {
            let credit = self.paths[at].tuples.active.credit_for_data();
            let size = mtu.min(usize::try_from(credit).unwrap_or(usize::MAX));
            if size < MIN_PACKET_ROOM {
                break;
            }
            let permit = self.permit(now, at, mtu as u64);
            if permit == Permit::All && !self.paths.is_single() {
                self.plan_ahead(at);
            }
            let from = buf.len();
            if !self.write_datagram(now, at, (from + size, ecn), permit, buf)? {
                self.note_idle_road(at, permit);
                break;
            }
            let len = buf.len() - from;
            self.on_datagram_sent(at, len);
            segment_size.get_or_insert(len);
            if len < mtu {
                break;
            }
        }
        let size = buf.len() - start;
        Ok((size > 0).then(|| Transmit {
            tuple: self.paths[at].tuples.active.addresses,
            ecn: ecn.then_some(EcnCodepoint::Ect0),
            size,
            segment_size: segment_size.filter(|&segment| segment < size),
        }))
    }

    /// How large datagrams are now. Probes are small: if only large datagrams get lost, they get
    /// through and show it (RFC 8899, section 4.2).
    fn datagram_size(&self, at: Slot) -> usize {
        let size = match self.paths[at].recovery.is_probing() {
            true => MIN_DATAGRAM_SIZE,
            false => self.paths[at].tuples.active.mtu.current(),
        };
        size.into()
    }

    /// What window and pacer allow for a datagram of `bytes` (RFC 9002, sections 7 and 7.7).
    fn permit(&mut self, now: Instant, at: Slot, bytes: u64) -> Permit {
        if self.paths[at].recovery.is_probing() {
            return Permit::All;
        }
        let may_send = self.paths[at].recovery.may_send(now, bytes)
            || self.on_window_limited(now, at, bytes)
                && self.paths[at].recovery.may_send(now, bytes);
        match may_send {
            true => Permit::All,
            false => Permit::AcksOnly,
        }
    }

    /// Nothing was left to say: does the application or the network hold the road up?
    fn note_idle_road(&mut self, at: Slot, permit: Permit) {
        let waiting = self.has_waiting(at);
        let recovery = &mut self.paths[at].recovery;
        match permit {
            Permit::All => recovery.on_app_limited(),
            Permit::AcksOnly => recovery.on_congestion_limited(waiting),
        }
    }

    /// One datagram, of one packet or several (RFC 9000, section 12.2); returns whether there is one.
    fn write_datagram(
        &mut self,
        now: Instant,
        at: Slot,
        (end, ecn): (usize, bool),
        permit: Permit,
        buf: &mut Vec<u8>,
    ) -> Result<bool, TransportError> {
        let start = buf.len();
        let path = &self.paths[at];
        let envelope = Envelope {
            path: at,
            end,
            ecn,
            tuple: path.tuples.active.generation,
            dcid: *path.remote_cids.active(),
        };
        let mut open: Option<OpenPacket> = None;
        let mut must_pad = false;
        for space in SpaceId::ALL {
            let Some(kind) = self.sealing_kind(space) else {
                continue;
            };
            if !self.has_output(now, (at, space), permit) {
                continue;
            }
            if end - buf.len() < MIN_PACKET_ROOM {
                break;
            }
            if let Some(done) = open.take() {
                self.finish_packet(now, done, &envelope, buf);
                if end - buf.len() < MIN_PACKET_ROOM {
                    break;
                }
            }
            let mut packet = self.begin_packet(now, space, kind, &envelope, buf)?;
            self.fill(now, &mut packet, permit, buf);
            // An empty packet is kept only to pad what precedes it.
            if packet.is_empty(buf) && !must_pad {
                Self::abandon_packet(&packet, buf);
                continue;
            }
            must_pad |=
                kind == PacketKind::Initial && (self.side.is_client() || packet.ack_eliciting);
            if packet.is_empty(buf) {
                Self::pad_packet(&mut packet, start + usize::from(MIN_DATAGRAM_SIZE), buf);
            }
            open = Some(packet);
        }
        let Some(mut last) = open else {
            return Ok(buf.len() > start);
        };
        if must_pad || last.wants_full {
            let until = (start + usize::from(MIN_DATAGRAM_SIZE)).min(end);
            Self::pad_packet(&mut last, until, buf);
        }
        self.finish_packet(now, last, &envelope, buf);
        Ok(true)
    }

    pub(super) fn on_datagram_sent(&mut self, at: Slot, len: usize) {
        self.count_datagram(at, len);
        let active = &mut self.paths[at].tuples.active;
        active.amplification.on_sent(len as u64);
    }

    pub(super) fn count_datagram(&mut self, at: Slot, len: usize) {
        self.telemetry.counters.datagrams_sent += 1;
        self.telemetry.counters.bytes_sent += len as u64;
        self.paths[at].counters.sent.count(len);
    }

    /// A datagram of one packet, to a 4-tuple that may not be the active one; `write` fills it and
    /// says whether there is anything to send.
    pub(super) fn transmit_alone(
        &mut self,
        now: Instant,
        (addresses, envelope): (FourTuple, Envelope),
        pad_to: usize,
        buf: &mut Vec<u8>,
        write: impl FnOnce(&mut Self, &mut OpenPacket, &mut Vec<u8>) -> bool,
    ) -> Result<Option<Transmit>, TransportError> {
        let Some(kind) = self.sealing_kind(SpaceId::Data) else {
            return Ok(None);
        };
        let start = buf.len();
        let mut packet = self.begin_packet(now, SpaceId::Data, kind, &envelope, buf)?;
        if !write(self, &mut packet, buf) {
            Self::abandon_packet(&packet, buf);
            return Ok(None);
        }
        Self::pad_packet(&mut packet, (start + pad_to).min(envelope.end), buf);
        self.finish_packet(now, packet, &envelope, buf);
        let size = buf.len() - start;
        self.count_datagram(envelope.path, size);
        let ecn = envelope.ecn.then_some(EcnCodepoint::Ect0);
        Ok(Some(Transmit {
            tuple: addresses,
            ecn,
            size,
            segment_size: None,
        }))
    }

    /// A probe for larger datagrams (RFC 9000, section 14.4).
    fn transmit_mtu_probe(
        &mut self,
        now: Instant,
        at: Slot,
        buf: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        if !self.is_confirmed() {
            return Ok(None);
        }
        let is_single = self.paths.is_single();
        let is_due = self.paths.searches_mtu(at);
        let path = &mut self.paths[at];
        if path.stage != Stage::Open || !is_due || !is_single && !path.is_live() {
            return Ok(None);
        }
        let active = &mut path.tuples.active;
        if !self.config.mtu.discover || !active.amplification.is_validated() {
            return Ok(None);
        }
        let Some(size) = active.mtu.poll_probe(now).map(usize::from) else {
            return Ok(None);
        };
        if !path.recovery.has_window(size as u64) {
            return Ok(None);
        }
        let envelope = Envelope {
            path: at,
            end: buf.len() + size,
            ecn: false,
            tuple: active.generation,
            dcid: *path.remote_cids.active(),
        };
        let addresses = active.addresses;
        let number = path.space.sent.next_number();
        self.transmit_alone(
            now,
            (addresses, envelope),
            size,
            buf,
            |this, packet, buf| {
                packet.mtu_probe = true;
                Self::write_ping(packet, buf);
                this.paths[at].tuples.active.mtu.on_probe_sent(number);
                true
            },
        )
    }
}
