//! Passes ACK frames and timeouts to recovery, and the tokens of the packets that it resolves to the modules that wrote
//! the frames (RFC 9002, appendix A).

use std::time::Duration;

use marline_wire::frame::Ack;
use marline_wire::{ErrorCode, TransportError};

use super::Connection;
use super::receive::ReceivedPacket;
use crate::level::{EncryptionLevel, SpaceId};
use crate::paths::Slot;
use crate::recovery::{
    AckReceived, Expired, PathParts, ProbeConditions, Recovery, Resolved, ResolvedToken,
};
use crate::spaces::Sent;
use crate::time::Instant;
use crate::token::Token;

/// The recovery of a path, and what it works on in one packet number space.
struct RecoveryAccess<'a> {
    recovery: &'a mut Recovery,
    sent: &'a mut Sent<Token>,
    parts: PathParts<'a>,
    resolved: &'a mut Resolved<Token>,
}

impl Connection {
    /// The recovery of a path, and what it works on in a space; `None` if the space is discarded.
    fn recovery_in(&mut self, at: Slot, id: SpaceId) -> Option<RecoveryAccess<'_>> {
        let path = &mut self.paths[at];
        let space = match id {
            SpaceId::Data => &mut path.space,
            handshake => self.establishment.space_mut(handshake)?,
        };
        Some(RecoveryAccess {
            recovery: &mut path.recovery,
            sent: &mut space.sent,
            parts: PathParts {
                tuple: path.tuples.active.generation,
                mtu: &mut path.tuples.active.mtu,
                ecn: &mut path.tuples.active.ecn,
                ledger: &mut path.ledgers[id as usize],
                careful_resume: path.careful_resume.as_deref_mut(),
            },
            resolved: &mut self.resolved,
        })
    }

    /// Handles an ACK frame for a space of a path, which packet `carrier` contained.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if it acknowledges a packet that was never sent, KEY_UPDATE_ERROR if it shows
    /// that the peer ignores a key update.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        at: Slot,
        id: SpaceId,
        frame: &Ack<'_>,
        carrier: &ReceivedPacket,
    ) -> Result<(), TransportError> {
        let ack = AckReceived {
            space: id,
            frame,
            ack_delay: match id {
                SpaceId::Data => self.establishment.peer().ack_delay(frame.delay),
                SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
            },
            max_ack_delay: self.establishment.peer().max_ack_delay,
            handshake_confirmed: self.is_confirmed(),
            // An acknowledged Handshake packet shows it as well.
            peer_validated_address: id == SpaceId::Handshake
                || self.establishment.has_peer_validated_address(),
            proven_from: self.paths.proven_from(at, carrier.path),
        };
        let Some(mut on) = self.recovery_in(at, id) else {
            return Ok(());
        };
        let (sent, parts) = (on.sent, &mut on.parts);
        let outcome = on
            .recovery
            .on_ack_received(now, &ack, sent, parts, on.resolved)
            .map_err(|bad| {
                on.resolved.clear();
                let reason = format!("acknowledges packet {}, which was never sent", bad.0);
                TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason).in_frame(Ack::TYPE)
            })?;
        let Some(outcome) = outcome else {
            return Ok(());
        };
        self.process_resolved(now, at, id);
        if id == SpaceId::Data {
            self.on_path_answer(now, at, &outcome);
            let path = &mut self.paths[at];
            if let Some(keys) = self.establishment.one_rtt_mut() {
                keys.on_acked(path.id, outcome.largest_acked, carrier.generation)?;
            }
            let next = path.space.sent.next_number();
            path.member.on_acked(outcome.largest_acked, next);
        }
        self.after_recovery(now, at);
        match id {
            SpaceId::Data => {
                let outstanding = self.paths[Slot::FIRST].space.sent.ack_eliciting_in_flight();
                self.establishment.on_data_acked(outstanding);
                self.request_ack_frequency(now);
            }
            SpaceId::Initial | SpaceId::Handshake => {
                let rtt = self.paths[Slot::FIRST].recovery.rtt();
                self.establishment.on_flight_acked(now, rtt);
            }
        }
        self.renew_capacity_token(now);
        Ok(())
    }

    /// Declares packets lost according to the loss detector.
    fn detect_lost(&mut self, now: Instant, at: Slot, id: SpaceId) {
        let max_ack_delay = self.establishment.peer().max_ack_delay;
        if let Some(mut on) = self.recovery_in(at, id) {
            let (sent, parts) = (on.sent, &mut on.parts);
            on.recovery
                .detect_lost(now, id, max_ack_delay, sent, parts, on.resolved);
            self.process_resolved(now, at, id);
        }
        self.after_recovery(now, at);
    }

    /// Passes what recovery resolved in a space to observers, to the bundle, and to the modules that wrote the frames.
    fn process_resolved(&mut self, now: Instant, at: Slot, id: SpaceId) {
        let path = &mut self.paths[at];
        self.telemetry
            .report_resolved(now, path.id, id, &self.resolved);
        for event in &self.resolved.events {
            path.member.on_congestion(event);
        }
        if id == SpaceId::Data && path.has_long_queue() {
            for token in &self.resolved.tokens {
                if let ResolvedToken::Lost(token) = token {
                    self.sending.on_lost_late(token);
                }
            }
        }
        self.process_tokens(id);
        if self.paths[at].recovery.in_flight() == 0 {
            self.resolved.shrink();
        }
    }

    /// Passes the tokens of resolved packets of a space to the modules that wrote the frames.
    fn process_tokens(&mut self, id: SpaceId) {
        let mut resolved = std::mem::take(&mut self.resolved);
        for token in resolved.tokens.drain(..) {
            match token {
                ResolvedToken::Acked(token) => self.on_token_acked(id, &token),
                // Datagrams are not repeated if a packet is lost, but only if a path fails.
                ResolvedToken::Lost(Token::Datagram(_)) => {}
                ResolvedToken::Lost(token) => {
                    if self.config.tail_duplication {
                        self.sending.on_lost(&token);
                    }
                    self.on_token_lost(&token);
                }
                ResolvedToken::Due(token) => self.on_token_lost(&token),
            }
        }
        resolved.clear();
        self.resolved = resolved;
    }

    /// Handles the acknowledgment of a frame in a packet of `space`.
    fn on_token_acked(&mut self, space: SpaceId, token: &Token) {
        match *token {
            Token::Segment(ref segment) => self.streams.on_segment_acked(segment),
            Token::Ack { path, largest } => match space {
                SpaceId::Data => {
                    if let Some(at) = self.paths.by_id(path) {
                        self.paths[at].space.received.on_ack_acked(largest);
                    }
                }
                handshake => {
                    if let Some(space) = self.establishment.space_mut(handshake) {
                        space.received.on_ack_acked(largest);
                    }
                }
            },
            Token::Datagram(_) => {}
            Token::Crypto(ref token) => self.establishment.on_crypto_acked(token),
            Token::Control(ref token) => self.streams.on_token_acked(token),
            Token::NewConnectionId { path, sequence } => {
                if let Some(cids) = self.paths.local_cids(path) {
                    cids.on_acked(sequence);
                }
            }
            Token::RetireConnectionId { path, sequence } => {
                if let Some(cids) = self.paths.remote_cids(path) {
                    cids.on_acked(sequence);
                }
            }
            Token::Notice(ref notice) => self.paths.on_notice_acked(notice),
            Token::HandshakeDone => self.announcements.handshake_done.on_acked(),
            Token::AddressValidation { sequence } => {
                self.announcements.new_token.on_acked(sequence);
            }
            Token::AckFrequency { sequence } => {
                self.announcements.ack_frequency.on_acked(sequence);
            }
        }
    }

    /// Makes the content of a frame due again.
    fn on_token_lost(&mut self, token: &Token) {
        match *token {
            Token::Segment(ref segment) => self.streams.on_segment_lost(segment),
            Token::Ack { .. } => {}
            Token::Datagram(ref sent) => self.datagrams.reroute_sent(sent),
            Token::Crypto(ref token) => self.establishment.on_crypto_lost(token),
            Token::Control(ref token) => self.streams.on_token_lost(token),
            Token::NewConnectionId { path, sequence } => {
                if let Some(cids) = self.paths.local_cids(path) {
                    cids.on_lost(sequence);
                }
            }
            Token::RetireConnectionId { path, sequence } => {
                if let Some(cids) = self.paths.remote_cids(path) {
                    cids.on_lost(sequence);
                }
            }
            Token::Notice(ref notice) => self.paths.on_notice_lost(notice),
            Token::HandshakeDone => self.announcements.handshake_done.on_lost(),
            Token::AddressValidation { sequence } => {
                self.announcements.new_token.on_lost(sequence);
            }
            Token::AckFrequency { sequence } => self.announcements.ack_frequency.on_lost(sequence),
        }
    }

    /// Updates state that depends on the recovery of a path.
    pub(super) fn after_recovery(&mut self, now: Instant, at: Slot) {
        self.paths[at].pace_careful_resume();
        self.paths.share_mtu(at);
        self.report_to_bundle(now, at);
        self.report_careful_resume(now);
        self.report_metrics(now, at);
    }

    /// Conditions of the probe timeout of a path; `None` if the path may not send.
    fn probe_conditions(&self, at: Slot) -> Option<ProbeConditions> {
        let path = &self.paths[at];
        if !path.is_open() || !path.may_send_data() {
            return None;
        }
        let is_handshake_over = self.is_confirmed() && self.establishment.is_over();
        let max_ack_delay = self.establishment.peer().max_ack_delay;
        let probe_interval = self.paths.probe_interval();
        let longest_pause = self.idle.longest_pause();
        let mut eliciting = [false; 3];
        eliciting[SpaceId::Data as usize] = path.space.sent.has_ack_eliciting_in_flight();
        if is_handshake_over {
            return Some(ProbeConditions {
                eliciting,
                probes_data: true,
                unblocks: None,
                max_ack_delay,
                probe_interval,
                longest_pause,
            });
        }
        for (id, space) in self.handshake_spaces_of(at) {
            eliciting[id as usize] = space.sent.has_ack_eliciting_in_flight();
        }
        let unblocks = match self.establishment.has_keys(EncryptionLevel::Handshake) {
            true => SpaceId::Handshake,
            false => SpaceId::Initial,
        };
        Some(ProbeConditions {
            eliciting,
            probes_data: self.is_confirmed() || self.establishment.is_over(),
            unblocks: (!self.establishment.has_peer_validated_address()).then_some(unblocks),
            max_ack_delay,
            probe_interval,
            longest_pause,
        })
    }

    /// Sets the loss detection timer of each path (RFC 9002, appendix A.8).
    pub(super) fn set_loss_timers(&mut self, now: Instant) {
        for at in self.paths.slots() {
            let conditions = self.probe_conditions(at);
            self.paths[at].recovery.set_timer(now, conditions.as_ref());
        }
    }

    /// Handles the loss detection timers that have expired (RFC 9002, appendix A.9).
    pub(super) fn on_loss_timeouts(&mut self, now: Instant) {
        for at in self.paths.slots() {
            let timer = self.paths[at].recovery.next_timeout();
            if timer.is_some_and(|timer| timer <= now) {
                self.on_loss_timeout(now, at);
            }
        }
    }

    fn on_loss_timeout(&mut self, now: Instant, at: Slot) {
        let conditions = self.probe_conditions(at);
        self.telemetry.report_timer_expired(now, &self.paths[at]);
        let path = &mut self.paths[at];
        match path.recovery.on_timeout(now, conditions.as_ref()) {
            Some(Expired::Loss(id)) => self.detect_lost(now, at, id),
            Some(Expired::Probe(id)) => {
                path.counters.ptos += 1;
                path.liveness.on_timeout(now);
                // The last ACK frames may be lost, too. During the handshake its probes may be the only packets, so that ACK
                // frames of 1-RTT packets go with them.
                for of in self.paths.slots() {
                    if of == at || self.paths.ack_carrier(of) == at {
                        self.paths[of].space.repeat_ack(now);
                    }
                }
                if self.paths.reroutes_on_timeout() {
                    self.paths[at].recovery.request_probes();
                    self.reroute_outstanding(at);
                } else {
                    self.send_probes(at, id);
                }
                self.report_unresponsive(now);
            }
            None => {}
        }
        self.set_loss_timers(now);
    }

    /// Makes probes due after a probe timeout of `expired`.
    fn send_probes(&mut self, at: Slot, expired: SpaceId) {
        for space in SpaceId::ALL {
            if let Some(on) = self.recovery_in(at, space) {
                on.recovery.probe(expired, space, on.sent, on.resolved);
                self.process_tokens(space);
            }
        }
    }

    /// Makes frames that a path has in flight in a space due again, on any path. Acknowledgments and losses of the
    /// packets still count.
    pub(super) fn requeue_in_flight(&mut self, at: Slot, id: SpaceId) {
        if let Some(on) = self.recovery_in(at, id) {
            on.sent
                .return_outstanding(|token| on.resolved.push_due(token));
            self.process_tokens(id);
        }
    }

    /// Makes the flight of an Initial or Handshake space due again.
    pub(super) fn retransmit_flight(&mut self, at: Slot, id: SpaceId) {
        self.retransmit_oldest(at, id, usize::MAX);
    }

    /// Makes the oldest `packets` of a space due again.
    pub(super) fn retransmit_oldest(&mut self, at: Slot, id: SpaceId, packets: usize) {
        if let Some(on) = self.recovery_in(at, id) {
            on.sent
                .oldest_outstanding(packets, |token| on.resolved.push_due(token));
            self.process_tokens(id);
        }
    }

    /// Makes the outstanding packets of a space due again that were sent by `time`; returns whether there are any.
    pub(super) fn retransmit_sent_by(&mut self, at: Slot, id: SpaceId, time: Instant) -> bool {
        let Some(on) = self.recovery_in(at, id) else {
            return false;
        };
        let any = on
            .sent
            .outstanding_since(time, |token| on.resolved.push_due(token));
        self.process_tokens(id);
        any
    }

    /// Makes all outstanding frames of a space due again, without declaring them lost.
    pub(super) fn retransmit_all(&mut self, at: Slot, id: SpaceId) {
        if let Some(on) = self.recovery_in(at, id) {
            on.recovery.on_retry(on.sent, on.resolved);
            self.process_tokens(id);
        }
    }
}
