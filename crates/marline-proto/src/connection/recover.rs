//! The road back: from an ACK frame, or the lack of one, to the rooms that wrote the frames
//! (RFC 9002; appendix A has the same steps).

use std::cell::Cell;
use std::time::Duration;

use marline_wire::frame::Ack;
use marline_wire::{ErrorCode, PathId, TransportError};

use super::Connection;
use super::path::{Recovery, Stage};
use super::receive::Opened;
use super::slots::Slot;
use super::token::{Rooms, Token};
use crate::coordination::careful_resume::CarefulResume;
use crate::level::SpaceId;
use crate::observe::events::{LossTrigger, PacketLost, SpuriousLoss};
use crate::observe::{Event, Observer};
use crate::paths::{EcnLedger, Tuples};
use crate::recovery::loss::{Cause, PacketView, Spurious, Verdict};
use crate::recovery::pto;
use crate::samples::{AckSample, CeSample, LossSample};
use crate::spaces::{Sent, SentPacket, Settled};
use crate::time::Instant;

/// Packets that probe after a timeout (RFC 9002, section 6.2.4).
const PROBES: u8 = 2;

/// What one ACK frame acknowledged for the first time.
#[derive(Default)]
struct Newly {
    bytes: u64,
    packets: u64,
    ack_eliciting: bool,
    ecn_marked: u64,
    largest: Option<(u64, SentPacket)>,
}

/// One space and the path that carries it, borrowed apart.
struct Road<'a> {
    path_id: PathId,
    sent: &'a mut Sent<Token>,
    probes: &'a mut u8,
    loss_time: &'a mut Option<Instant>,
    recovery: &'a mut Recovery,
    tuples: &'a mut Tuples,
    ledger: &'a mut EcnLedger,
    rooms: Rooms<'a>,
}

impl Connection {
    fn road(&mut self, at: Slot, id: SpaceId) -> Option<Road<'_>> {
        let path = &mut self.paths[at];
        let space = match id {
            SpaceId::Data => &mut path.space,
            early => self.early.get_mut(early)?,
        };
        Some(Road {
            path_id: path.id,
            sent: &mut space.sent,
            probes: &mut space.probes,
            loss_time: &mut space.loss_time,
            recovery: &mut path.recovery,
            tuples: &mut path.tuples,
            ledger: &mut path.ledgers[id as usize],
            rooms: Rooms {
                path: path.id,
                received: &mut space.received,
                local_cids: &mut path.local_cids,
                remote_cids: &mut path.remote_cids,
                handshake: &mut self.handshake,
                streams: &mut self.streams,
                announcements: &mut self.announcements,
                elsewhere: &mut self.elsewhere,
            },
        })
    }

    /// An ACK frame in `carrier`, of what was sent in a space of a path.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if it names a packet that was never sent, KEY_UPDATE_ERROR if it shows
    /// that the peer ignores a key update.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        (at, id): (Slot, SpaceId),
        ack: &Ack<'_>,
        carrier: &Opened,
    ) -> Result<(), TransportError> {
        let confirmed = self.is_confirmed();
        let max_ack_delay = self.peer.max_ack_delay;
        let ack_delay = match id {
            SpaceId::Data => self.peer.ack_delay(ack.delay),
            SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
        };
        let mut observer = self.observer.take();
        let Some(mut road) = self.road(at, id) else {
            self.observer = observer;
            return Ok(());
        };

        let before = road.sent.largest_acked();
        let prior_in_flight = road.recovery.in_flight;
        let mut newly = Newly::default();
        let mut outcome = Ok(());
        for range in ack.ranges() {
            outcome = road.settle(now, id, range, before, &mut newly, &mut observer);
            if outcome.is_err() {
                break;
            }
        }
        let Some((largest, packet)) = newly.largest.filter(|_| outcome.is_ok()) else {
            self.observer = observer;
            return outcome;
        };

        let active = road.tuples.active.generation;
        let rtt_updated =
            largest == ack.largest && newly.ack_eliciting && road.recovery.heeds(&packet, active);
        if rtt_updated {
            let latest = now - packet.sent_at;
            road.recovery
                .rtt
                .update(latest, ack_delay, confirmed, max_ack_delay);
            road.recovery.first_sample_at.get_or_insert(now);
        }
        if before.is_none_or(|before| ack.largest > before) {
            road.settle_ecn(now, &newly, ack, &packet);
        }
        road.detect_lost(now, id, max_ack_delay, &mut observer);

        let rate = road.recovery.rate.finish(road.recovery.rtt.min());
        let recovery = &mut *road.recovery;
        let sample = AckSample {
            bytes: newly.bytes,
            bytes_in_flight: recovery.in_flight,
            prior_in_flight,
            largest_acked: largest,
            largest_sent: road.sent.next_number() - 1,
            largest_acked_sent_at: packet.sent_at,
            rtt: recovery.rtt.view(),
            rtt_updated,
            rate,
            app_limited: recovery.app_limited,
        };
        if newly.bytes > 0 {
            recovery.on_acked(now, &sample);
            if id == SpaceId::Data {
                recovery.drive_resume(|resume| resume.on_ack(now, &sample));
            }
        }
        if recovery.in_flight == 0 {
            recovery.idle_since.get_or_insert(now);
        }
        let horizon = now - pto::period(&sample.rtt, max_ack_delay).saturating_mul(3);
        road.sent.forget_settled(horizon);

        let works = self.shows_that_path_works(at, packet.sent_at, carrier.path);
        let timeouts = self.paths[at].recovery.pto_count;
        // A client whose address the server has not validated keeps its backoff (section 6.2.1).
        if works && self.peer_completed_address_validation() {
            self.paths[at].recovery.pto_count = 0;
        }
        if id == SpaceId::Data {
            self.on_path_answer(now, at, works.then_some(timeouts));
        }
        self.observer = observer;
        self.settle_elsewhere();
        if id == SpaceId::Data
            && let Some(keys) = &mut self.keys.one_rtt
        {
            keys.on_acked(self.paths[at].id, largest, carrier.generation)?;
        }
        if id == SpaceId::Data {
            self.paths[at].count_bundle_round(largest);
        }
        self.share_mtu(at);
        self.report_to_bundle(now, at);
        self.settle_resume(now);
        self.tell_client_of_path(now);
        self.tell_metrics(now, at);
        Ok(())
    }

    /// Declares lost what the detector says is lost.
    pub(super) fn detect_lost(&mut self, now: Instant, at: Slot, id: SpaceId) {
        let max_ack_delay = self.peer.max_ack_delay;
        let mut observer = self.observer.take();
        if let Some(mut road) = self.road(at, id) {
            road.detect_lost(now, id, max_ack_delay, &mut observer);
        }
        self.observer = observer;
        self.settle_elsewhere();
        self.share_mtu(at);
        self.report_to_bundle(now, at);
        self.settle_resume(now);
        self.tell_metrics(now, at);
    }

    /// When the loss detection timer of each path fires (RFC 9002, appendix A.8).
    pub(super) fn set_loss_timers(&mut self, now: Instant) {
        for at in self.paths.slots() {
            let losses = self.spaces(at).filter_map(|(_, space)| space.loss_time);
            let timer = losses
                .min()
                .or_else(|| self.pto_space(now, at).map(|(due, _)| due));
            self.paths[at].recovery.timer = timer;
        }
    }

    /// The space of a path whose probe timeout ends first, and when.
    fn pto_space(&self, now: Instant, at: Slot) -> Option<(Instant, SpaceId)> {
        let path = &self.paths[at];
        if path.stage != Stage::Open || !path.tuples.active.may_send_data() {
            return None;
        }
        // Before the handshake is confirmed, application data is no reason to probe (section 6.2.1).
        let probes_data = self.is_confirmed() || self.early.is_empty();
        let mut eliciting = self
            .spaces(at)
            .filter(|(_, space)| space.sent.has_ack_eliciting_in_flight())
            .filter(|&(id, _)| id != SpaceId::Data || probes_data)
            .peekable();
        let backoff = |period| self.probe_backoff(at, period);
        if eliciting.peek().is_none() {
            if self.peer_completed_address_validation() {
                return None;
            }
            // The server may be blocked by its amplification limit (section 6.2.2.1).
            let space = match self.keys.handshake {
                Some(_) => SpaceId::Handshake,
                None => SpaceId::Initial,
            };
            let sent = path.space.last_ack_eliciting;
            let since = path.recovery.idle_since.or(sent).unwrap_or(now);
            return Some((since + backoff(path.recovery.pto(Duration::ZERO)), space));
        }
        eliciting
            .filter_map(|(id, space)| {
                let delay = match id {
                    SpaceId::Data => self.peer.max_ack_delay,
                    SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
                };
                Some((
                    space.last_ack_eliciting? + backoff(path.recovery.pto(delay)),
                    id,
                ))
            })
            .min()
    }

    /// The loss detection timers that are over have fired (RFC 9002, appendix A.9).
    pub(super) fn on_loss_timeouts(&mut self, now: Instant) {
        for at in self.paths.slots() {
            let timer = self.paths[at].recovery.timer;
            if timer.is_some_and(|timer| timer <= now) {
                self.on_loss_timeout(now, at);
            }
        }
    }

    fn on_loss_timeout(&mut self, now: Instant, at: Slot) {
        let due = self
            .spaces(at)
            .filter_map(|(id, space)| Some((space.loss_time?, id)))
            .min();
        if let Some((_, id)) = due {
            self.detect_lost(now, at, id);
        } else if let Some((_, id)) = self.pto_space(now, at) {
            let path = &mut self.paths[at];
            path.counters.ptos += 1;
            path.recovery.pto_count += 1;
            path.recovery.liveness.on_timeout(now);
            if self.multipath.is_some() && self.paths[self.best_path()].is_live() {
                self.paths[at].space.probes = PROBES;
                self.pass_on_outstanding(at);
            } else {
                self.request_probes(at, id);
            }
        }
        self.set_loss_timers(now);
    }

    /// Has two probes sent from `id`, which repeat what has waited longest (RFC 9002, section 6.2.4). Of
    /// the handshake all is repeated: its flights are short, travel together and get lost together,
    /// and each further timeout would be twice as long.
    fn request_probes(&mut self, at: Slot, id: SpaceId) {
        for space in SpaceId::ALL {
            let Some(mut road) = self.road(at, space) else {
                continue;
            };
            let Road {
                sent,
                probes,
                rooms,
                ..
            } = &mut road;
            let is_early = space != SpaceId::Data;
            // A server may be waiting for handshake packets from the other early space too.
            if space == id || is_early && sent.has_ack_eliciting_in_flight() {
                let packets = if is_early { usize::MAX } else { 1 };
                sent.oldest_outstanding(packets, |token| rooms.on_lost(token));
                **probes = PROBES;
            }
        }
        self.settle_elsewhere();
    }

    /// What a path has on its way is due again, on whatever path; what becomes of the packets still
    /// counts.
    pub(super) fn give_back(&mut self, at: Slot, id: SpaceId) {
        if let Some(Road {
            sent, mut rooms, ..
        }) = self.road(at, id)
        {
            sent.return_outstanding(|token| rooms.on_lost(token));
        }
        self.settle_elsewhere();
    }

    /// Has the flight of an early space go out once more.
    pub(super) fn repeat_flight(&mut self, at: Slot, id: SpaceId) {
        if let Some(Road {
            sent, mut rooms, ..
        }) = self.road(at, id)
        {
            sent.oldest_outstanding(usize::MAX, |token| rooms.on_lost(token));
        }
    }

    /// Has all that a space sent go out again, without blaming the network.
    pub(super) fn resend_all(&mut self, at: Slot, id: SpaceId) {
        let Some(mut road) = self.road(at, id) else {
            return;
        };
        let Road {
            sent,
            recovery,
            rooms,
            ..
        } = &mut road;
        let visit = |_, packet: &SentPacket| {
            if packet.in_flight {
                recovery.in_flight -= u64::from(packet.size);
            }
        };
        sent.lose_while(u64::MAX, |_, _| true, visit, |token| rooms.on_lost(token));
        sent.discard(|_| {});
    }

    /// Forgets a space whose keys are discarded (RFC 9002, section 6.4).
    pub(super) fn discard_space(&mut self, id: SpaceId) {
        let Some(mut space) = self.early.take(id) else {
            return;
        };
        let recovery = &mut self.paths[Slot::FIRST].recovery;
        space.sent.discard(|packet| {
            if packet.in_flight {
                recovery.in_flight -= u64::from(packet.size);
            }
        });
        recovery.pto_count = 0;
        self.handshake.discard(id);
    }
}

impl Road<'_> {
    /// Settles the packets of one range of an ACK frame.
    fn settle(
        &mut self,
        now: Instant,
        id: SpaceId,
        range: std::ops::RangeInclusive<u64>,
        largest_before: Option<u64>,
        newly: &mut Newly,
        observer: &mut Option<Box<dyn Observer>>,
    ) -> Result<(), TransportError> {
        let Road {
            path_id,
            sent,
            recovery,
            tuples,
            rooms,
            ..
        } = self;
        let active = tuples.active.generation;
        let visit = |number: u64, packet: &SentPacket, settled: Settled| {
            newly.packets += 1;
            newly.ack_eliciting |= packet.ack_eliciting;
            if newly.largest.is_none_or(|(largest, _)| number > largest) {
                newly.largest = Some((number, *packet));
            }
            let size = u64::from(packet.size);
            match settled {
                Settled::Acked if packet.in_flight => {
                    recovery.in_flight -= size;
                    if recovery.heeds(packet, active) {
                        newly.bytes += size;
                        recovery.rate.on_packet_acked(now, &packet.rate, size);
                    }
                }
                Settled::Acked => {}
                Settled::AfterLoss => {
                    let spurious = Spurious {
                        packets_after: largest_before.unwrap_or(number).saturating_sub(number),
                        elapsed: now - packet.sent_at,
                    };
                    recovery.on_spurious(now, packet, &spurious);
                    if let Some(observer) = observer {
                        let event = SpuriousLoss {
                            path: path_id.0,
                            kind: id.packet_kind(),
                            number,
                            reordering: spurious.packets_after,
                            elapsed: spurious.elapsed,
                        };
                        observer.on_event(now, &Event::SpuriousLoss(event));
                    }
                }
            }
            if packet.tuple == active {
                newly.ecn_marked += u64::from(packet.ecn);
                let mtu = &mut tuples.active.mtu;
                if packet.mtu_probe {
                    if let Some(size) = mtu.on_probe_acked(number) {
                        recovery.on_mtu(size);
                    }
                } else {
                    mtu.on_acked(number, packet.size);
                }
            }
        };
        sent.on_acked(range, visit, |token| rooms.on_acked(token))
            .map_err(|bad| {
                let reason = format!("acknowledges packet {}, which was never sent", bad.0);
                TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason).in_frame(Ack::TYPE)
            })
    }

    fn settle_ecn(&mut self, now: Instant, newly: &Newly, ack: &Ack<'_>, packet: &SentPacket) {
        let ecn = &mut self.tuples.active.ecn;
        match ecn.on_ack(self.ledger, newly.ecn_marked, ack.ecn) {
            Ok(new_ce) if new_ce > 0 => {
                let sample = CeSample {
                    sent_at: packet.sent_at,
                    new_ce,
                    largest_sent: self.sent.next_number() - 1,
                };
                self.recovery.ecn_ce += new_ce;
                let before = self.recovery.controller.window();
                self.recovery.controller.on_ce(now, &sample);
                if self.recovery.controller.window() < before {
                    self.recovery.notice_fluctuation(true, false, before);
                }
                self.recovery.note_congestion(packet.sent_at);
                self.recovery.drive_resume(CarefulResume::on_ce);
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn detect_lost(
        &mut self,
        now: Instant,
        id: SpaceId,
        max_ack_delay: Duration,
        observer: &mut Option<Box<dyn Observer>>,
    ) {
        *self.loss_time = None;
        let Some(largest_acked) = self.sent.largest_acked() else {
            return;
        };
        let largest_sent = self.sent.next_number() - 1;
        let rtt = self.recovery.rtt.view();
        let persistent_after = pto::persistent_congestion(&rtt, max_ack_delay);
        let first_sample_at = self.recovery.first_sample_at;
        let Road {
            path_id,
            sent,
            loss_time,
            recovery,
            tuples,
            rooms,
            ..
        } = self;

        let cause = Cell::new(Cause::Packet);
        let detector = &recovery.detector;
        let judge = |number: u64, packet: &SentPacket| {
            let view = PacketView {
                packets_after: largest_acked - number,
                sent_at: packet.sent_at,
            };
            match detector.is_lost(&view, &rtt, now) {
                Verdict::Lost(why) => {
                    cause.set(why);
                    true
                }
                Verdict::Until(deadline) => {
                    **loss_time = Some(deadline);
                    false
                }
                Verdict::Keep => false,
            }
        };

        let mut lost: Option<LossSample> = None;
        let mut oldest = None;
        let mut run: Option<(u64, Instant)> = None;
        let mut persistent = false;
        let mut released = 0;
        let mut black_hole = false;
        let visit = |number: u64, packet: &SentPacket| {
            if packet.in_flight {
                released += u64::from(packet.size);
            }
            if let Some(observer) = observer {
                let event = PacketLost {
                    path: path_id.0,
                    kind: id.packet_kind(),
                    number,
                    size: packet.size.into(),
                    is_mtu_probe: packet.mtu_probe,
                    trigger: match cause.get() {
                        Cause::Packet => LossTrigger::ReorderingThreshold,
                        Cause::Time => LossTrigger::TimeThreshold,
                    },
                };
                observer.on_event(now, &Event::PacketLost(event));
            }
            if packet.tuple != tuples.active.generation {
                return;
            }
            if packet.mtu_probe {
                tuples.active.mtu.on_probe_lost(number);
                return;
            }
            if packet.ecn {
                tuples.active.ecn.on_lost();
            }
            black_hole |= tuples.active.mtu.on_lost(number, packet.size, largest_sent);
            if !packet.in_flight {
                return;
            }
            // Packets without a gap between them, from one ack-eliciting packet to another.
            let began = match run {
                Some((previous, began)) if previous + 1 == number => began,
                _ => packet.sent_at,
            };
            run = Some((number, began));
            oldest.get_or_insert(packet.sent_at);
            persistent |= packet.ack_eliciting
                && packet.sent_at - began > persistent_after
                && first_sample_at.is_some_and(|first| began > first);
            let sample = lost.get_or_insert(LossSample {
                bytes: 0,
                packets: 0,
                largest_lost: number,
                latest_sent_at: packet.sent_at,
                largest_sent,
                bytes_in_flight: 0,
                persistent: false,
            });
            sample.bytes += u64::from(packet.size);
            sample.packets += 1;
            sample.largest_lost = number;
            sample.latest_sent_at = packet.sent_at;
        };
        sent.lose_while(largest_acked, judge, visit, |token| rooms.on_lost(token));

        recovery.in_flight -= released;
        if black_hole {
            recovery.on_mtu(tuples.active.mtu.current());
        }
        if let Some(mut sample) = lost {
            sample.bytes_in_flight = recovery.in_flight;
            sample.persistent = persistent;
            recovery.on_loss(now, &sample);
            recovery.note_congestion(oldest.unwrap_or(sample.latest_sent_at));
            recovery.drive_resume(|resume| resume.on_loss(&sample));
        }
    }
}

impl Recovery {
    fn on_loss(&mut self, now: Instant, sample: &LossSample) {
        let new_epoch = self
            .epoch
            .began
            .is_none_or(|began| sample.latest_sent_at > began);
        if new_epoch {
            self.epoch = super::path::LossEpoch {
                began: Some(now),
                newest_sent_at: sample.latest_sent_at,
                unexplained: sample.packets,
            };
        } else {
            self.epoch.unexplained += sample.packets;
        }
        self.lost_packets += sample.packets;
        self.lost_bytes += sample.bytes;
        self.congestion_events += u64::from(new_epoch);
        self.detector.on_loss();
        let before = self.controller.window();
        self.controller.on_loss(now, sample);
        if new_epoch || sample.persistent {
            self.notice_fluctuation(true, sample.persistent, before);
        }
        if sample.persistent {
            self.rtt.reset_min();
        }
    }

    /// A lost packet arrived after all; when all of an epoch have, the reduction was for nothing.
    fn on_spurious(&mut self, now: Instant, packet: &SentPacket, spurious: &Spurious) {
        self.spurious_losses += 1;
        self.detector.on_spurious_loss(spurious, &self.rtt.view());
        let of_epoch = self
            .epoch
            .began
            .is_some_and(|began| packet.sent_at <= began);
        if of_epoch && self.epoch.unexplained > 0 {
            self.epoch.unexplained -= 1;
            if self.epoch.unexplained == 0 {
                self.controller
                    .on_spurious_loss(now, self.epoch.newest_sent_at);
            }
        }
    }

    /// Whether the fate of `packet` says something about the way that is in use: packets sent to
    /// another address before, or to probe one, do not (RFC 9000, section 9.4).
    fn heeds(&self, packet: &SentPacket, active: u32) -> bool {
        packet.tuple == active || Some(packet.tuple) == self.former_tuple
    }

    /// Datagrams have another size.
    pub(super) fn on_mtu(&mut self, size: u16) {
        self.controller.on_mtu(size.into());
        if let Some(pacer) = &mut self.pacer {
            pacer.on_mtu(size.into());
        }
    }
}
