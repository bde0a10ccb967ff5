//! Processing of ACK frames, from their ranges to the congestion controller (RFC 9002, appendix A.7).

use std::time::Duration;

use marline_wire::frame::Ack;

use super::loss::Spurious;
use super::manager::Recovery;
use super::resolved::{PathParts, Resolved, ResolvedToken, SpuriouslyLost};
use crate::congestion::{CongestionEvent, Reaction};
use crate::level::SpaceId;
use crate::samples::{AckSample, CeSample};
use crate::spaces::{BadAck, PacketOutcome, ResolvedPacket, Sent, SentPacket};
use crate::time::Instant;

/// A received ACK frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckReceived<'a> {
    /// Packet number space that it acknowledges.
    pub(crate) space: SpaceId,
    pub(crate) frame: &'a Ack<'a>,
    /// ACK Delay reported by the peer; zero for Initial and Handshake packets.
    pub(crate) ack_delay: Duration,
    /// Maximum ACK delay of the peer, for application data.
    pub(crate) max_ack_delay: Duration,
    pub(crate) handshake_confirmed: bool,
    /// Whether the peer has validated our address. A client that does not know this keeps its backoff (RFC
    /// 9002, section 6.2.1).
    pub(crate) peer_validated_address: bool,
    /// Send time from which on an acknowledged packet shows that the path works; `None` if any does.
    pub(crate) proven_from: Option<Instant>,
}

/// The result of an ACK frame with newly acknowledged packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Largest newly acknowledged packet number.
    pub(crate) largest_acked: u64,
    /// Whether this shows that the path works.
    pub(crate) proves_path: bool,
    /// Number of consecutive probe timeouts before it.
    pub(crate) timeouts: u32,
}

/// The newly acknowledged packets of one ACK frame.
#[derive(Default)]
struct NewlyAcked {
    /// Bytes in flight on the 4-tuples of the present path.
    bytes: u64,
    ack_eliciting: bool,
    /// Packets sent with ECT on the active 4-tuple.
    marked: u64,
    /// Packets sent with ECT before the path changed.
    marked_elsewhere: u64,
    largest: Option<NumberedPacket>,
}

#[derive(Clone, Copy)]
struct NumberedPacket {
    number: u64,
    packet: SentPacket,
}

impl Recovery {
    /// Processes an ACK frame for the packets `sent` in a space, and adds what it resolves to `resolved`. `None` if
    /// it acknowledges no new packet.
    ///
    /// # Errors
    ///
    /// [`BadAck`] if it acknowledges a packet that was never sent.
    pub(crate) fn on_ack_received<T: Clone>(
        &mut self,
        now: Instant,
        ack: &AckReceived<'_>,
        sent: &mut Sent<T>,
        path: &mut PathParts<'_>,
        resolved: &mut Resolved<T>,
    ) -> Result<Option<Outcome>, BadAck> {
        let before = sent.largest_acked();
        let prior_in_flight = self.in_flight();
        let mut newly = NewlyAcked::default();
        for range in ack.frame.ranges() {
            sent.on_acked(range, |packet| {
                if packet.outcome == PacketOutcome::AckedAfterLoss {
                    let lost = self.on_spurious_loss(now, ack.space, &packet, before, path);
                    resolved.spuriously_lost.push(lost);
                }
                self.on_newly_acked(now, &packet, &mut newly, path);
                resolved.acked.push(packet.number);
                let tokens = packet.tokens.cloned().map(ResolvedToken::Acked);
                resolved.tokens.extend(tokens);
            })?;
        }
        let Some(largest) = newly.largest else {
            return Ok(None);
        };

        let rtt_updated = self.update_rtt(now, ack, &newly, path.tuple);
        let largest_sent = sent.next_number() - 1;
        if before.is_none_or(|before| ack.frame.largest > before) {
            let ecn = &mut *path.ecn;
            // Invalid counts end the use of ECN on the path, and are not a congestion signal.
            let counted = ecn.on_ack(path.ledger, newly.marked, ack.frame.ecn);
            let reported = counted.unwrap_or(0);
            self.counters.ecn_ce += reported;
            // The peer counts per packet number space: packets sent before a migration may account for that many.
            let new_ce = reported.saturating_sub(newly.marked_elsewhere);
            if new_ce > 0 {
                let sample = CeSample {
                    sent_at: largest.packet.sent_at,
                    new_ce,
                    l4s: ecn.is_l4s(),
                    largest_sent,
                };
                let event = self.on_ce(now, &sample);
                self.on_congestion(now, event, path, resolved);
            }
        }
        self.detect_lost(now, ack.space, ack.max_ack_delay, sent, path, resolved);

        let rate = self.rate.finish(self.rtt.min());
        let sample = AckSample {
            bytes: newly.bytes,
            bytes_in_flight: self.in_flight(),
            prior_in_flight,
            largest_acked: largest.number,
            largest_sent,
            largest_acked_sent_at: largest.packet.sent_at,
            rtt: self.rtt.view(),
            rtt_updated,
            rate,
            app_limited: self.is_app_limited(),
        };
        if newly.bytes > 0 {
            let event = self.on_acked(now, ack.space, &sample);
            self.on_congestion(now, event, path, resolved);
        }
        self.budget.note_idle(now);
        let horizon = now - self.pto(ack.max_ack_delay).saturating_mul(3);
        sent.forget_resolved(horizon);

        let since = ack.proven_from;
        let outcome = Outcome {
            largest_acked: largest.number,
            proves_path: since.is_none_or(|since| largest.packet.sent_at >= since),
            timeouts: self.timers.pto_count(),
        };
        if outcome.proves_path && ack.peer_validated_address {
            self.timers.reset_pto_count();
        }
        Ok(Some(outcome))
    }

    /// Takes an RTT sample if the frame permits it (RFC 9002, section 5.1); returns whether it does.
    fn update_rtt(
        &mut self,
        now: Instant,
        ack: &AckReceived<'_>,
        newly: &NewlyAcked,
        active_tuple: u32,
    ) -> bool {
        let Some(largest) = newly.largest else {
            return false;
        };
        let is_sample = largest.number == ack.frame.largest
            && newly.ack_eliciting
            && self.is_of_path(&largest.packet, active_tuple);
        if is_sample {
            let latest = now - largest.packet.sent_at;
            self.rtt.update(
                latest,
                ack.ack_delay,
                ack.handshake_confirmed,
                ack.max_ack_delay,
            );
            self.first_sample_at.get_or_insert(now);
        }
        is_sample
    }

    /// Processes a newly acknowledged packet.
    fn on_newly_acked<T>(
        &mut self,
        now: Instant,
        acked: &ResolvedPacket<'_, T>,
        newly: &mut NewlyAcked,
        path: &mut PathParts<'_>,
    ) {
        let (number, packet) = (acked.number, acked.packet);
        newly.count(number, packet);
        let is_of_path = self.is_of_path(packet, path.tuple);
        if acked.outcome == PacketOutcome::Acked {
            let bytes = packet.bytes_in_flight();
            self.budget.release(bytes);
            if packet.in_flight && is_of_path {
                newly.bytes += bytes;
                self.rate
                    .on_packet_acked(now, &packet.rate, packet.sent_at, bytes);
            }
        }
        if packet.ecn && !is_of_path {
            newly.marked_elsewhere += 1;
        }
        if packet.tuple != path.tuple {
            return;
        }
        newly.marked += u64::from(packet.ecn);
        if !packet.mtu_probe {
            path.mtu.on_acked(number, packet.size);
        } else if let Some(size) = path.mtu.on_probe_acked(number) {
            self.on_mtu(size);
        }
    }

    /// Handles the acknowledgment of a packet declared lost; when all losses of an epoch are spurious, its reduction
    /// was unnecessary. The reordering counts only for packets of the present path. Before the ACK frame,
    /// `largest_before` was the largest acknowledged number.
    fn on_spurious_loss<T>(
        &mut self,
        now: Instant,
        space: SpaceId,
        acked: &ResolvedPacket<'_, T>,
        largest_before: Option<u64>,
        path: &PathParts<'_>,
    ) -> SpuriouslyLost {
        let (number, packet) = (acked.number, acked.packet);
        let lost = SpuriouslyLost {
            number,
            reordering: largest_before.unwrap_or(number).saturating_sub(number),
            elapsed: now - packet.sent_at,
        };
        self.loss_periods[space as usize].on_spurious_loss(packet.sent_at);
        self.counters.spurious_losses += 1;
        if self.is_of_path(packet, path.tuple) {
            let spurious = Spurious {
                packets_after: lost.reordering,
                elapsed: lost.elapsed,
            };
            self.detector.on_spurious_loss(&spurious, &self.rtt.view());
        }
        let newest_sent_at = packet
            .counted_by
            .and_then(|sample| self.epoch.on_spurious_loss(sample));
        if let Some(newest_sent_at) = newest_sent_at {
            let before = self.controller().window();
            self.controller_mut().on_spurious_loss(now, newest_sent_at);
            self.counters.undone_reductions += u64::from(self.controller().window() > before);
        }
        lost
    }

    /// Handles newly reported CE marks (RFC 9002, section 7.1). If the controller reacts, losses of the same flight
    /// cause no further reaction (section 7.3.2).
    fn on_ce(&mut self, now: Instant, sample: &CeSample) -> CongestionEvent {
        let before = self.controller().window();
        self.controller_mut().on_ce(now, sample);
        let after = self.controller().window();
        let reaction = (after < before).then_some(Reaction {
            persistent: false,
            before,
            after,
        });
        if reaction.is_some() {
            self.epoch.on_ce_reduction(now);
            self.counters.congestion_events += 1;
        }
        self.note_congestion(sample.sent_at);
        CongestionEvent::Ce(reaction)
    }

    /// Passes an acknowledgment to the controller. Leaving slow start is reported as a reaction, unless a known
    /// threshold was reached, which provides no information about the path.
    fn on_acked(&mut self, now: Instant, space: SpaceId, sample: &AckSample) -> CongestionEvent {
        let controller = self.controller_mut();
        let was_in_slow_start = controller.in_slow_start();
        let (before, threshold) = (controller.window(), controller.ssthresh());
        controller.on_ack(now, sample);
        let exited =
            was_in_slow_start && !controller.in_slow_start() && controller.ssthresh() != threshold;
        let reaction = exited.then(|| Reaction {
            persistent: false,
            before,
            after: controller.window(),
        });
        CongestionEvent::Acked(space, *sample, reaction)
    }

    /// Passes an event to Careful Resume, once the controller has handled it.
    pub(super) fn on_congestion<T>(
        &mut self,
        now: Instant,
        event: CongestionEvent,
        path: &mut PathParts<'_>,
        resolved: &mut Resolved<T>,
    ) {
        if let Some(careful_resume) = &mut path.careful_resume {
            careful_resume.on_congestion(now, &event, self.controller_mut());
        }
        resolved.events.push(event);
    }
}

impl NewlyAcked {
    fn count(&mut self, number: u64, packet: &SentPacket) {
        self.ack_eliciting |= packet.ack_eliciting;
        if self.largest.is_none_or(|largest| number > largest.number) {
            self.largest = Some(NumberedPacket {
                number,
                packet: *packet,
            });
        }
    }
}
