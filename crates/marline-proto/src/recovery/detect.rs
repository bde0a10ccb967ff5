//! Loss detection, and the reaction to losses (RFC 9002, appendices A.10 and B.8).

use std::time::Duration;

use super::loss::{PacketView, Verdict};
use super::manager::Recovery;
use super::persistent::PersistentCongestion;
use super::pto;
use super::resolved::{LostPacket, PathParts, Resolved, ResolvedToken};
use crate::congestion::{CongestionEvent, Reaction};
use crate::level::SpaceId;
use crate::samples::LossSample;
use crate::spaces::{Sent, SentPacket};
use crate::time::Instant;

/// The packets declared lost in one run of loss detection.
#[derive(Debug)]
struct Losses {
    largest_sent: u64,
    persistent: PersistentCongestion,
    /// Bytes removed from those in flight.
    released: u64,
    /// Whether only large packets were lost.
    black_hole: bool,
    /// Send time of the oldest loss that counts for the controller.
    oldest_sent_at: Option<Instant>,
    /// Sample for the controller.
    sample: Option<LossSample>,
}

impl Recovery {
    /// Declares packets `sent` in a space lost according to the detector, and adds them to `resolved`.
    /// `max_ack_delay` is the peer's.
    pub(crate) fn detect_lost<T: Clone>(
        &mut self,
        now: Instant,
        space: SpaceId,
        max_ack_delay: Duration,
        sent: &mut Sent<T>,
        path: &mut PathParts<'_>,
        resolved: &mut Resolved<T>,
    ) {
        self.timers.set_loss_time(space, None);
        let Some(largest_acked) = sent.largest_acked() else {
            return;
        };
        let rtt = self.rtt.view();
        let persistent_after = pto::persistent_congestion(self.pto(max_ack_delay));
        let mut losses = Losses {
            largest_sent: sent.next_number() - 1,
            persistent: PersistentCongestion::new(
                persistent_after,
                self.first_sample_at,
                self.loss_periods[space as usize],
            ),
            released: 0,
            black_hole: false,
            oldest_sent_at: None,
            sample: None,
        };
        // Time at which the first remaining packet will be lost, unless it is acknowledged before.
        let mut loss_time = None;
        let sample = self.epoch.next_sample();
        sent.lose_while(
            largest_acked,
            |number, packet| {
                let view = PacketView {
                    packets_after: largest_acked - number,
                    sent_at: packet.sent_at,
                };
                match self.detector.is_lost(&view, &rtt, now) {
                    Verdict::Lost(cause) => Some(cause),
                    Verdict::Until(deadline) => {
                        loss_time = Some(deadline);
                        None
                    }
                    Verdict::Keep => None,
                }
            },
            |lost, cause| {
                let packet = lost.packet;
                losses.black_hole |= path.on_lost(lost.number, packet, losses.largest_sent);
                if lost.acked_between {
                    losses.persistent.on_acked_between();
                }
                let is_of_path = self.former_tuples.is_of_path(packet, path.tuple);
                let is_counted = losses.add(lost.number, packet, is_of_path);
                if is_counted {
                    let loss = self.rate.on_packet_lost(
                        lost.number,
                        &packet.rate,
                        packet.sent_at,
                        packet.size.into(),
                    );
                    self.budget.controller_mut().on_packet_lost(now, &loss);
                }
                resolved.lost.push(LostPacket {
                    number: lost.number,
                    size: packet.size,
                    mtu_probe: packet.mtu_probe,
                    cause,
                });
                let tokens = lost.tokens.cloned().map(ResolvedToken::Lost);
                resolved.tokens.extend(tokens);
                is_counted.then_some(sample)
            },
        );
        self.timers.set_loss_time(space, loss_time);
        self.loss_periods[space as usize] = losses.persistent.period();
        self.budget.release(losses.released);
        self.budget.note_idle(now);
        if losses.black_hole {
            self.on_mtu(path.mtu.current());
        }
        if let Some(event) = self.on_losses(now, &losses) {
            self.on_congestion(now, event, path, resolved);
        }
    }

    /// Handles losses that are signs of congestion, if there are any.
    fn on_losses(&mut self, now: Instant, losses: &Losses) -> Option<CongestionEvent> {
        let sample = LossSample {
            bytes_in_flight: self.in_flight(),
            persistent: losses.persistent.is_established(),
            ..losses.sample?
        };
        let reaction = self.on_loss(now, &sample);
        self.note_congestion(losses.oldest_sent_at.unwrap_or(sample.latest_sent_at));
        Some(CongestionEvent::Lost(sample, reaction))
    }

    /// Passes losses to the controller; it reacts to the first of an epoch, and to persistent congestion.
    fn on_loss(&mut self, now: Instant, sample: &LossSample) -> Option<Reaction> {
        let is_new_epoch = self.epoch.on_loss(now, sample);
        self.counters.lost_packets += sample.packets;
        self.counters.lost_bytes += sample.bytes;
        self.counters.congestion_events += u64::from(is_new_epoch);
        self.detector.on_loss();
        let before = self.controller().window();
        self.controller_mut().on_loss(now, sample);
        if sample.persistent {
            self.rtt.reset_min();
        }
        (is_new_epoch || sample.persistent).then(|| Reaction {
            persistent: sample.persistent,
            before,
            after: self.controller().window(),
        })
    }
}

impl PathParts<'_> {
    /// Handles the loss of packet `number` in path MTU discovery and ECN validation. Returns whether a black hole was
    /// detected, so that datagrams must be smaller.
    fn on_lost(&mut self, number: u64, packet: &SentPacket, largest_sent: u64) -> bool {
        if packet.tuple != self.tuple {
            return false;
        }
        if packet.mtu_probe {
            self.mtu.on_probe_lost(number);
            return false;
        }
        if packet.ecn {
            self.ecn.on_lost();
        }
        self.mtu.on_lost(number, packet.size, largest_sent)
    }
}

impl Losses {
    /// Returns whether the packet is a sign of congestion. Packets sent before the path changed, and PMTU probes,
    /// are not (RFC 9000, sections 9.4 and 14.4).
    fn add(&mut self, number: u64, packet: &SentPacket, is_of_path: bool) -> bool {
        self.released += packet.bytes_in_flight();
        if !is_of_path || packet.mtu_probe || !packet.in_flight {
            return false;
        }
        if packet.ack_eliciting {
            self.persistent.on_lost(packet.sent_at);
        }
        self.oldest_sent_at.get_or_insert(packet.sent_at);
        let sample = self.sample.get_or_insert(LossSample {
            bytes: 0,
            packets: 0,
            largest_lost: number,
            latest_sent_at: packet.sent_at,
            largest_sent: self.largest_sent,
            bytes_in_flight: 0,
            persistent: false,
        });
        sample.bytes += u64::from(packet.size);
        sample.packets += 1;
        sample.largest_lost = number;
        sample.latest_sent_at = packet.sent_at;
        true
    }
}
