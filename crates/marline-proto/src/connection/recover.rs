//! Passes ACK frames and timeouts to recovery, and its results to the modules that depend on them (RFC 9002,
//! appendix A).

use std::time::Duration;

use marline_wire::frame::Ack;
use marline_wire::{ErrorCode, TransportError};

use super::Connection;
use super::feedback::{Feedback, SpaceAccess};
use super::frame_owners::FrameOwners;
use super::receive::ReceivedPacket;
use crate::level::SpaceId;
use crate::paths::PathAccess;
use crate::paths::Slot;
use crate::recovery::{AckReceived, Expired, ProbeConditions};
use crate::time::Instant;

impl Connection {
    /// The packets that a path sent in a space, and the modules to which recovery reports; `None` if
    /// the space is discarded.
    fn space_access(&mut self, at: Slot, id: SpaceId) -> Option<SpaceAccess<'_>> {
        let PathAccess { path, returned } = self.paths.access(at);
        let space = match id {
            SpaceId::Data => &mut path.space,
            handshake => self.handshake_spaces.get_mut(handshake)?,
        };
        Some(SpaceAccess {
            recovery: &mut path.recovery,
            sent: &mut space.sent,
            feedback: Feedback {
                path: path.id,
                tuples: &mut path.tuples,
                ledger: &mut path.ledgers[id as usize],
                member: &mut path.member,
                careful_resume: path.careful_resume.as_deref_mut(),
                owners: FrameOwners {
                    path: path.id,
                    received: &mut space.received,
                    local_cids: &mut path.local_cids,
                    remote_cids: &mut path.remote_cids,
                    handshake: &mut self.handshake,
                    streams: &mut self.streams,
                    announcements: &mut self.announcements,
                    returned,
                },
                tail_copies: self.config.tail_copies.then_some(&mut self.tail_copies),
                observer: self.telemetry.observer.as_deref_mut(),
                newly_acked: Vec::new(),
                proven_from: None,
            },
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
                SpaceId::Data => self.peer.ack_delay(frame.delay),
                SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
            },
            max_ack_delay: self.peer.max_ack_delay,
            handshake_confirmed: self.is_confirmed(),
            // An acknowledged Handshake packet shows it as well.
            peer_validated_address: id == SpaceId::Handshake
                || self.peer_completed_address_validation(),
        };
        let proven_from = self.paths.proven_from(at, carrier.path);
        let Some(mut access) = self.space_access(at, id) else {
            return Ok(());
        };
        access.feedback.proven_from = proven_from;
        let outcome = access
            .recovery
            .on_ack_received(now, &ack, access.sent, &mut access.feedback)
            .map_err(|bad| {
                let reason = format!("acknowledges packet {}, which was never sent", bad.0);
                TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason).in_frame(Ack::TYPE)
            })?;
        let Some(outcome) = outcome else {
            return Ok(());
        };
        if id == SpaceId::Data {
            self.on_path_answer(now, at, &outcome);
        }
        self.paths.settle_returned();
        if id == SpaceId::Data {
            let path = &mut self.paths[at];
            if let Some(keys) = &mut self.keys.one_rtt {
                keys.on_acked(path.id, outcome.largest_acked, carrier.generation)?;
            }
            let next = path.space.sent.next_number();
            path.member.on_acked(outcome.largest_acked, next);
        }
        self.after_recovery(now, at);
        match id {
            SpaceId::Data => {
                self.on_data_acked();
                self.request_ack_frequency(now);
            }
            SpaceId::Initial | SpaceId::Handshake => self.on_flight_acked(now),
        }
        self.renew_capacity_token(now);
        Ok(())
    }

    /// Declares packets lost according to the loss detector.
    fn detect_lost(&mut self, now: Instant, at: Slot, id: SpaceId) {
        let max_ack_delay = self.peer.max_ack_delay;
        if let Some(mut access) = self.space_access(at, id) {
            let recovery = access.recovery;
            recovery.detect_lost(now, id, max_ack_delay, access.sent, &mut access.feedback);
        }
        self.paths.settle_returned();
        self.after_recovery(now, at);
    }

    /// Updates state that depends on the recovery of a path.
    fn after_recovery(&mut self, now: Instant, at: Slot) {
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
        let is_handshake_over = self.is_confirmed() && self.handshake_spaces.is_empty();
        let max_ack_delay = self.peer.max_ack_delay;
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
        let unblocks = match self.keys.handshake {
            Some(_) => SpaceId::Handshake,
            None => SpaceId::Initial,
        };
        Some(ProbeConditions {
            eliciting,
            probes_data: self.is_confirmed() || self.handshake_spaces.is_empty(),
            unblocks: (!self.peer_completed_address_validation()).then_some(unblocks),
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
        self.report_timer_expired(now, at);
        let path = &mut self.paths[at];
        match path.recovery.on_timeout(now, conditions.as_ref()) {
            Some(Expired::Loss(id)) => self.detect_lost(now, at, id),
            Some(Expired::Probe(id)) => {
                path.counters.ptos += 1;
                path.liveness.on_timeout(now);
                if self.paths.reroutes_on_timeout() {
                    self.paths[at].recovery.request_probes();
                    self.reroute_outstanding(at);
                } else {
                    self.send_probes(at, id);
                }
            }
            None => {}
        }
        self.set_loss_timers(now);
    }

    /// Makes probes due after a probe timeout of `expired`.
    fn send_probes(&mut self, at: Slot, expired: SpaceId) {
        for space in SpaceId::ALL {
            if let Some(mut access) = self.space_access(at, space) {
                let recovery = access.recovery;
                recovery.probe(expired, space, access.sent, &mut access.feedback);
            }
        }
        self.paths.settle_returned();
    }

    /// Makes frames that a path has in flight in a space due again, on any path. Acknowledgments and losses of the
    /// packets still count.
    pub(super) fn requeue_in_flight(&mut self, at: Slot, id: SpaceId) {
        if let Some(mut access) = self.space_access(at, id) {
            let owners = &mut access.feedback.owners;
            access
                .sent
                .return_outstanding(|token| owners.on_lost(token));
        }
        self.paths.settle_returned();
    }

    /// Makes the flight of an Initial or Handshake space due again.
    pub(super) fn retransmit_flight(&mut self, at: Slot, id: SpaceId) {
        if let Some(mut access) = self.space_access(at, id) {
            let owners = &mut access.feedback.owners;
            let sent = access.sent;
            sent.oldest_outstanding(usize::MAX, |token| owners.on_lost(token));
        }
    }

    /// Makes the oldest `packets` of application data due again.
    pub(super) fn retransmit_oldest(&mut self, at: Slot, packets: usize) {
        if let Some(mut access) = self.space_access(at, SpaceId::Data) {
            let owners = &mut access.feedback.owners;
            access
                .sent
                .oldest_outstanding(packets, |token| owners.on_lost(token));
        }
        self.paths.settle_returned();
    }

    /// Makes the outstanding packets of a space due again that were sent by `time`; returns whether there are any.
    pub(super) fn retransmit_sent_by(&mut self, at: Slot, id: SpaceId, time: Instant) -> bool {
        let Some(mut access) = self.space_access(at, id) else {
            return false;
        };
        let owners = &mut access.feedback.owners;
        let any = access
            .sent
            .outstanding_since(time, |token| owners.on_lost(token));
        self.paths.settle_returned();
        any
    }

    /// Makes all outstanding frames of a space due again, without declaring them lost.
    pub(super) fn retransmit_all(&mut self, at: Slot, id: SpaceId) {
        if let Some(mut access) = self.space_access(at, id) {
            let recovery = access.recovery;
            recovery.on_retry(access.sent, &mut access.feedback);
        }
    }

    /// Discards the state of a space whose keys are discarded (RFC 9002, section 6.4).
    pub(super) fn discard_space(&mut self, id: SpaceId) {
        let Some(mut space) = self.handshake_spaces.take(id) else {
            return;
        };
        let recovery = &mut self.paths[Slot::FIRST].recovery;
        recovery.on_space_discarded(id, &mut space.sent);
        self.handshake.discard(id);
    }
}
