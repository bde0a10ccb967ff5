//! Fills packets with the frames of all modules, in a fixed order.

use super::Connection;
use super::packet::PacketBuilder;
use super::transmit::Permit;
use crate::datagrams::FrameRoom;
use crate::establish::ACK_DELAY_EXPONENT;
use crate::level::{EncryptionLevel, SpaceId};
use crate::observe::events::Initiator;
use crate::paths::Slot;
use crate::sending::{Content, Filling};
use crate::time::Instant;
use crate::token::Token;
use marline_wire::PathId;

/// Number of consecutive ACK-only packets after which one carries a PING, so that the peer acknowledges our ACK
/// frames and old ranges can be dropped (RFC 9000, section 13.2.4).
const ACKS_BEFORE_PING: u32 = 64;

/// Length of a PING frame, in bytes.
const PING_LEN: usize = 1;

impl Connection {
    /// Whether a packet of `space` would carry a frame.
    pub(super) fn has_output(
        &self,
        now: Instant,
        at: Slot,
        space: SpaceId,
        permit: Permit,
    ) -> bool {
        match space {
            SpaceId::Data => {
                (self.establishment.one_rtt().is_some() && self.is_ack_due(now, at))
                    || permit == Permit::All && self.has_data_output(at)
            }
            handshake => self.establishment.space(handshake).is_some_and(|space| {
                space.received.is_ack_due(now)
                    || permit == Permit::All
                        && (self.paths[at].recovery.probes(handshake) > 0
                            || self.establishment.has_crypto(handshake)
                            || handshake == SpaceId::Handshake
                                && self.establishment.is_finished_copy_due()
                                && self.has_data_output(at))
            }),
        }
    }

    /// Whether a packet of `at` would carry a frame other than ACK.
    pub(super) fn has_data_output(&self, at: Slot) -> bool {
        let path = &self.paths[at];
        path.probes() > 0
            || !path.queue.is_empty()
            || !path.datagrams.is_empty()
            || path.ping_due
            || path.tuples.active.responses.is_due()
            || self.paths.is_single() && self.sending.ready().is_some()
            || at == self.paths.best()
                && (self.datagrams.is_due()
                    || self.streams.has_control_frames()
                    || self.streams.has_ends()
                    || self.announcements.is_due()
                    || self.paths.has_frames()
                    || self.establishment.has_crypto(SpaceId::Data))
    }

    /// Whether data waits that only the window or the pacer of `at` holds back.
    pub(super) fn has_waiting(&self, at: Slot) -> bool {
        self.sending.ready().is_some()
            || self.has_data_output(at)
            || at == Slot::FIRST
                && [SpaceId::Initial, SpaceId::Handshake]
                    .into_iter()
                    .any(|space| self.establishment.has_crypto(space))
    }

    /// Whether an acknowledgment is due on `at`.
    fn is_ack_due(&self, now: Instant, at: Slot) -> bool {
        let is_due = |of: Slot| self.paths[of].space.received.is_ack_due(now);
        let mut slots = self.paths.slots();
        slots.any(|of| is_due(of) && self.paths.ack_carrier(of) == at)
    }

    /// Appends the ACK frames for a packet on `at`, usually those of its own packet number space.
    fn write_acks(&mut self, now: Instant, at: Slot, buf: &mut Vec<u8>, limit: usize) {
        // A PING has room beside the largest ACK frame: without, it would stay due.
        let limit = limit.saturating_sub(PING_LEN);
        for of in self.paths.slots() {
            if !self.paths[of].space.received.is_ack_wanted() || self.paths.ack_carrier(of) != at {
                continue;
            }
            let room = limit.saturating_sub(buf.len());
            let named = self.paths.named(of);
            let acked = &mut self.paths[of];
            let path = acked.id;
            let received = &mut acked.space.received;
            let written = received.write_ack(now, named, ACK_DELAY_EXPONENT, room, buf);
            if let Some(largest) = written {
                acked.ack_policy.on_ack_sent();
                let sent = &mut self.paths[at].space.sent;
                sent.push_token(Token::Ack { path, largest });
            }
        }
    }

    /// Fills `packet` with the frames that are due.
    pub(super) fn fill(
        &mut self,
        now: Instant,
        packet: &mut PacketBuilder,
        permit: Permit,
        buf: &mut Vec<u8>,
    ) {
        match packet.level.space() {
            SpaceId::Data => self.fill_data(now, packet, permit, buf),
            handshake => self.fill_handshake(now, handshake, packet, permit, buf),
        }
    }

    /// Initial and Handshake packets: ACK, CRYPTO, PING.
    fn fill_handshake(
        &mut self,
        now: Instant,
        id: SpaceId,
        packet: &mut PacketBuilder,
        permit: Permit,
        buf: &mut Vec<u8>,
    ) {
        let probes = self.paths[Slot::FIRST].recovery.probes(id);
        let is_copy = id == SpaceId::Handshake && self.establishment.is_finished_copy_due();
        if is_copy {
            self.retransmit_flight(packet.path, id);
        }
        if probes > 0 && self.side.is_client() && !self.establishment.has_crypto(id) {
            // Clients expand these datagrams anyway (RFC 9000, section 14.1), and some servers close the connection
            // when a PING arrives first.
            self.retransmit_flight(packet.path, id);
        }
        let Some(space) = self.establishment.space_mut(id) else {
            return;
        };
        if space.received.has_unacked() || probes > 0 {
            let room = packet.limit.saturating_sub(buf.len() + PING_LEN);
            if let Some(largest) = space.received.write_ack(now, None, 0, room, buf) {
                space.sent.push_token(Token::Ack {
                    path: PathId::INITIAL,
                    largest,
                });
            }
        }
        if permit == Permit::AcksOnly {
            return;
        }
        let before = buf.len();
        self.establishment
            .write_crypto(id, buf, packet.limit, |_| {});
        packet.ack_eliciting |= buf.len() > before;
        if probes > 0 && !packet.ack_eliciting {
            packet.ping(buf);
        }
    }

    /// 0-RTT and 1-RTT packets.
    fn fill_data(
        &mut self,
        now: Instant,
        packet: &mut PacketBuilder,
        permit: Permit,
        buf: &mut Vec<u8>,
    ) {
        let limit = packet.limit;
        let one_rtt = packet.level == EncryptionLevel::OneRtt;
        let at = packet.path;
        if one_rtt {
            if permit == Permit::All && self.paths[at].ping_due {
                for of in self.paths.slots() {
                    if self.paths.ack_carrier(of) == at {
                        self.paths[of].space.received.repeat_ack();
                    }
                }
            }
            self.write_acks(now, at, buf, limit);
        }
        let is_best = at == self.paths.best();
        let path = &mut self.paths[at];
        if permit == Permit::AcksOnly {
            if path.acks_alone >= ACKS_BEFORE_PING && path.recovery.in_flight() == 0 {
                packet.ping(buf);
            }
            return;
        }
        let before = buf.len();
        let sent = &mut path.space.sent;
        if one_rtt && is_best {
            self.establishment
                .write_crypto(SpaceId::Data, buf, limit, |token| sent.push_token(token));
            if self.announcements.is_due() {
                if self.announcements.handshake_done.write_frames(buf, limit) {
                    sent.push_token(Token::HandshakeDone);
                }
                if let Some(sequence) = self.announcements.ack_frequency.write_frames(buf, limit) {
                    sent.push_token(Token::AckFrequency { sequence });
                }
                if let Some(sequence) = self.announcements.new_token.write_frames(buf, limit) {
                    sent.push_token(Token::AddressValidation { sequence });
                }
                if let Some(requested) = self.announcements.ack_frequency.take_first_sent() {
                    self.telemetry.report_ack_frequency(
                        now,
                        &self.paths[at],
                        Initiator::Local,
                        &requested,
                    );
                }
            }
        }
        let responses = &mut self.paths[at].tuples.active.responses;
        if one_rtt && responses.is_due() {
            packet.wants_full |= responses.write_frames(buf, limit);
        }
        if one_rtt && is_best {
            self.paths.write_frames(at, buf, limit);
        }
        if is_best {
            let sent = &mut self.paths[at].space.sent;
            self.streams.write_control_frames(buf, limit, &mut |token| {
                sent.push_token(Token::Control(token));
            });
        }
        let streams_first = self.has_stream_data(at) && self.paths[at].datagrams.take_turn();
        if !streams_first {
            self.write_datagrams(now, packet, is_best, buf);
        }
        let filling = Filling {
            path: at,
            limit,
            // A datagram that may still be padded must not end with a frame without a length.
            may_end_packet: self.establishment.is_over() && !packet.wants_full,
        };
        let mut content = Content {
            streams: &mut self.streams,
            paths: &mut self.paths,
        };
        self.sending.fill(&filling, &mut content, buf);
        if streams_first && buf.len() == before {
            self.write_datagrams(now, packet, is_best, buf);
        }
        packet.ack_eliciting |= buf.len() > before;
        if !packet.ack_eliciting {
            let path = &self.paths[packet.path];
            let is_due = path.ping_due || path.probes() > 0;
            if is_due
                || path.acks_alone >= ACKS_BEFORE_PING
                || self.paths.wants_ack_of_acks(now, at)
            {
                packet.ping(buf);
            }
        }
        if packet.ack_eliciting {
            self.paths[packet.path].ping_due = false;
        }
    }

    /// Whether data of streams waits for a packet on `at`.
    pub(super) fn has_stream_data(&self, at: Slot) -> bool {
        !self.paths[at].queue.is_empty() || self.paths.is_single() && self.sending.ready().is_some()
    }

    /// Appends the datagrams that wait for the path of `packet`, and for the best one if it is that.
    fn write_datagrams(
        &mut self,
        now: Instant,
        packet: &PacketBuilder,
        is_best: bool,
        buf: &mut Vec<u8>,
    ) {
        let limit = packet.limit;
        let path = &mut self.paths[packet.path];
        if path.datagrams.is_empty() && !(is_best && self.datagrams.is_due()) {
            return;
        }
        // Other packets of the UDP datagram reduce the room in this one.
        let fresh = packet.is_empty(buf) && limit.saturating_sub(buf.len()) >= path.payload_room();
        let mut room = FrameRoom { buf, limit, fresh };
        let (before, sent) = (room.buf.len(), &mut path.space.sent);
        self.datagrams
            .write_frames(now, &mut path.datagrams, is_best, &mut room, |datagram| {
                sent.push_token(Token::Datagram(datagram));
            });
        if buf.len() > before {
            // Neither waits for all of the other.
            self.paths[packet.path].datagrams.give_turn();
        }
    }
}
