//! Send path: builds datagrams from the pending frames of the modules.
//!
//! A call builds one batch for one 4-tuple. Order: CONNECTION_CLOSE, path validation, the packets that
//! [`super::fill`] fills, and finally a PMTU probe.

use marline_wire::TransportError;

use super::Connection;
use super::mtu_probes::FirstMtuProbe;
use super::packet::{DatagramContext, PacketBuilder};
use crate::level::{EncryptionLevel, SpaceId};
use crate::limits::{MIN_DATAGRAM_SIZE, MIN_PACKET_SPACE};
use crate::paths::Slot;
use crate::paths::Stage;
use crate::sending::Content;
use crate::time::Instant;
use crate::tuple::{EcnCodepoint, FourTuple, Transmit};

/// The next datagram to be written on a path.
#[derive(Clone, Copy, Debug)]
struct NextDatagram {
    path: Slot,
    /// Maximum length of the buffer, in bytes.
    end: usize,
    /// Its ECN codepoint.
    ecn: Option<EcnCodepoint>,
    permit: Permit,
}

/// The kind of packets that may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// All packets.
    All,
    /// Only packets that are not congestion controlled: ACK-only packets.
    AcksOnly,
}

impl Connection {
    /// Appends the next datagrams to `buf`, up to `max_datagrams` of one size for one destination.
    ///
    /// To be called after every other call with `now`, until it returns `None`; `buf` must be cleared in between.
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
        self.report_careful_resume(now);
        if matches!(outcome, Ok(None)) {
            // Once for each burst, not for each datagram.
            self.telemetry
                .report_changes(now, &mut self.streams, &self.paths);
        } else {
            // If nothing was sent, the timers are unchanged.
            self.set_loss_timers(now);
        }
        match outcome {
            Ok(transmit) => transmit,
            Err(error) => {
                self.fail(now, error);
                self.transmit_close(now, buf)
            }
        }
    }

    /// A batch on the first path that has something to send.
    fn transmit_any(
        &mut self,
        now: Instant,
        max_datagrams: usize,
        buf: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        if self.first_mtu_probe == FirstMtuProbe::Due {
            let probe = self.transmit_mtu_probe(now, Slot::FIRST, buf)?;
            if probe.is_some() {
                return Ok(probe);
            }
        }
        for at in self.paths.slots() {
            if self.paths[at].stage != Stage::Open {
                continue;
            }
            let batch = self.transmit_batch(now, at, max_datagrams, buf)?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
        let mut content = Content {
            streams: &mut self.streams,
            paths: &mut self.paths,
        };
        let sending = &mut self.sending;
        let copied = sending.copy_repeats(&mut content);
        let copied = copied.then(|| content.paths.best());
        if let Some(at) = copied.or_else(|| sending.reinject(now, &mut content)) {
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

    /// The datagrams of a path that its data, window and pacer allow.
    fn transmit_batch(
        &mut self,
        now: Instant,
        at: Slot,
        max_datagrams: usize,
        buf: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let start = buf.len();
        let mtu = self.datagram_size(at);
        let ecn = self.paths[at].tuples.active.ecn.mark(now);
        let mut segment_size = None;
        for _ in 0..max_datagrams {
            let most = segment_size.unwrap_or(mtu);
            let credit = self.paths[at].credit_for_data();
            let size = most.min(usize::try_from(credit).unwrap_or(usize::MAX));
            if size < MIN_PACKET_SPACE {
                break;
            }
            let permit = self.permit(now, at, size as u64);
            if permit == Permit::All && !self.paths.is_single() {
                let mut content = Content {
                    streams: &mut self.streams,
                    paths: &mut self.paths,
                };
                self.sending.plan_ahead(now, at, &mut content);
            }
            let from = buf.len();
            let next = NextDatagram {
                path: at,
                end: from + size,
                ecn,
                permit,
            };
            if !self.write_datagram(now, next, buf)? {
                if most == mtu {
                    self.record_send_limit(at, permit);
                }
                break;
            }
            let len = buf.len() - from;
            self.on_datagram_sent(at, len);
            // All have the size of the first, but the last, which may be smaller.
            let is_last = len < *segment_size.get_or_insert(len);
            if is_last || len < mtu && !self.has_datagram_for(at, len) {
                break;
            }
        }
        let size = buf.len() - start;
        Ok((size > 0).then(|| Transmit {
            tuple: self.paths[at].tuples.active.addresses,
            ecn,
            size,
            segment_size: segment_size.filter(|&segment| segment < size),
        }))
    }

    /// Whether the next packet of `at` would have datagrams of the application and no data of streams, and whichever is first fits
    /// into `size` bytes.
    fn has_datagram_for(&self, at: Slot, size: usize) -> bool {
        let path = &self.paths[at];
        let is_best = at == self.paths.best();
        let frame = self.datagrams.next_frame_size(&path.datagrams, is_best);
        let room = size.saturating_sub(path.shortest_overhead());
        !self.has_stream_data(at) && frame.is_some_and(|frame| frame <= room)
    }

    /// The size of datagrams, in bytes. PTO probes are small: if only large datagrams are lost, probes arrive and
    /// reveal a black hole (RFC 8899, section 4.3).
    fn datagram_size(&self, at: Slot) -> usize {
        let size = match self.paths[at].recovery.is_probing() {
            true => MIN_DATAGRAM_SIZE,
            false => self.paths[at].tuples.active.mtu.current(),
        };
        size.into()
    }

    /// The kind of packets that window and pacer permit for a datagram of `bytes` (RFC 9002,
    /// sections 7 and 7.7).
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

    /// Called when no datagram was written: records whether the application or the window is the limit.
    fn record_send_limit(&mut self, at: Slot, permit: Permit) {
        match permit {
            // The application has more than the queues of datagrams may hold.
            Permit::All if self.has_blocked_datagrams(at) => {}
            Permit::All => self.paths[at].recovery.on_app_limited(),
            Permit::AcksOnly => {
                let waiting = self.has_waiting(at);
                self.paths[at].recovery.on_congestion_limited(waiting);
            }
        }
    }

    /// Whether the application waits for a queue of datagrams that `at` sends.
    fn has_blocked_datagrams(&self, at: Slot) -> bool {
        self.paths[at].datagrams.is_blocked()
            || self.datagrams.is_blocked() && at == self.paths.best()
    }

    /// Writes one datagram of one or several packets (RFC 9000, section 12.2); returns whether there is one.
    fn write_datagram(
        &mut self,
        now: Instant,
        next: NextDatagram,
        buf: &mut Vec<u8>,
    ) -> Result<bool, TransportError> {
        let NextDatagram {
            path: at,
            end,
            ecn,
            permit,
        } = next;
        let start = buf.len();
        let path = &self.paths[at];
        let datagram = DatagramContext {
            path: at,
            end,
            ecn,
            tuple: path.tuples.active.generation,
            dcid: *path.remote_cids.active(),
        };
        let mut open: Option<PacketBuilder> = None;
        let mut must_pad = false;
        for space in SpaceId::ALL {
            let Some(level) = self.establishment.sealing_level(space) else {
                continue;
            };
            if !self.has_output(now, at, space, permit) {
                continue;
            }
            if end - buf.len() < MIN_PACKET_SPACE {
                break;
            }
            if let Some(done) = open.take() {
                self.finish_packet(now, done, &datagram, buf);
                if end - buf.len() < MIN_PACKET_SPACE {
                    break;
                }
            }
            let mut packet = self.begin_packet(now, level, &datagram, buf)?;
            self.fill(now, &mut packet, permit, buf);
            // An empty packet is kept only to expand the datagram of the one before it.
            if packet.is_empty(buf) && !must_pad {
                packet.abandon(buf);
                continue;
            }
            must_pad |= level == EncryptionLevel::Initial
                && (self.side.is_client() || packet.ack_eliciting);
            if packet.is_empty(buf) {
                packet.pad(start + usize::from(MIN_DATAGRAM_SIZE), buf);
            }
            open = Some(packet);
        }
        let Some(mut last) = open else {
            return Ok(buf.len() > start);
        };
        if must_pad || last.wants_full {
            let until = (start + usize::from(MIN_DATAGRAM_SIZE)).min(end);
            last.pad(until, buf);
        }
        self.finish_packet(now, last, &datagram, buf);
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

    /// A datagram of one 1-RTT packet, to `addresses`, which may not be the active 4-tuple of the path; `write` fills
    /// it and returns whether there is anything to send.
    pub(super) fn transmit_alone(
        &mut self,
        now: Instant,
        addresses: FourTuple,
        datagram: DatagramContext,
        pad_to: usize,
        buf: &mut Vec<u8>,
        write: impl FnOnce(&mut Self, &mut PacketBuilder, &mut Vec<u8>) -> bool,
    ) -> Result<Option<Transmit>, TransportError> {
        let Some(level) = self.establishment.sealing_level(SpaceId::Data) else {
            return Ok(None);
        };
        let start = buf.len();
        let mut packet = self.begin_packet(now, level, &datagram, buf)?;
        if !write(self, &mut packet, buf) {
            packet.abandon(buf);
            return Ok(None);
        }
        packet.pad((start + pad_to).min(datagram.end), buf);
        self.finish_packet(now, packet, &datagram, buf);
        let size = buf.len() - start;
        self.count_datagram(datagram.path, size);
        let ecn = datagram.ecn;
        Ok(Some(Transmit {
            tuple: addresses,
            ecn,
            size,
            segment_size: None,
        }))
    }
}
