//! Loss detection, and the reaction to losses (RFC 9002, appendices A.10 and B.8).

use std::cell::Cell;
use std::time::Duration;

use super::context::{CongestionEvent, Context, LostPacket, Reaction};
use super::loss::{Cause, LossDetector, PacketView, Verdict};
use super::manager::Recovery;
use super::persistent::PersistentCongestion;
use super::pto;
use crate::level::SpaceId;
use crate::samples::{LossSample, RttView};
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

/// Classifies the packets of one space, and records the reason.
struct Judge<'a> {
    detector: &'a dyn LossDetector,
    rtt: RttView,
    now: Instant,
    largest_acked: u64,
    cause: Cell<Cause>,
    /// Time at which the first remaining packet will be lost, unless it is acknowledged before.
    loss_time: Cell<Option<Instant>>,
}

impl Judge<'_> {
    fn is_lost(&self, number: u64, packet: &SentPacket) -> bool {
        let view = PacketView {
            packets_after: self.largest_acked - number,
            sent_at: packet.sent_at,
        };
        match self.detector.is_lost(&view, &self.rtt, self.now) {
            Verdict::Lost(cause) => {
                self.cause.set(cause);
                true
            }
            Verdict::Until(deadline) => {
                self.loss_time.set(Some(deadline));
                false
            }
            Verdict::Keep => false,
        }
    }
}

impl Recovery {
    /// Declares packets `sent` in a space lost according to the detector. `max_ack_delay` is the peer's.
    pub(crate) fn detect_lost<T>(
        &mut self,
        now: Instant,
        space: SpaceId,
        max_ack_delay: Duration,
        sent: &mut Sent<T>,
        context: &mut impl Context<T>,
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
        let judge = Judge {
            detector: &*self.detector,
            rtt,
            now,
            largest_acked,
            cause: Cell::new(Cause::Packet),
            loss_time: Cell::new(None),
        };
        let sample = self.epoch.next_sample();
        sent.lose_while(
            largest_acked,
            |number, packet| judge.is_lost(number, packet),
            |settled| {
                let lost = LostPacket {
                    space,
                    number: settled.number,
                    packet: settled.packet,
                    cause: judge.cause.get(),
                    largest_sent: losses.largest_sent,
                };
                losses.black_hole |= context.on_packet_lost(now, &lost);
                if settled.acked_between {
                    losses.persistent.on_acked_between();
                }
                let active_tuple = context.active_tuple();
                let is_of_path = self.former_tuples.is_of_path(settled.packet, active_tuple);
                let is_counted = losses.add(settled.number, settled.packet, is_of_path);
                if is_counted {
                    let packet = settled.packet;
                    let loss = self.rate.on_packet_lost(
                        settled.number,
                        &packet.rate,
                        packet.sent_at,
                        packet.size.into(),
                    );
                    self.budget.controller_mut().on_packet_lost(now, &loss);
                }
                settled
                    .tokens
                    .for_each(|token| context.on_token_lost(token));
                is_counted.then_some(sample)
            },
        );
        let loss_time = judge.loss_time.get();
        self.timers.set_loss_time(space, loss_time);
        self.loss_periods[space as usize] = losses.persistent.period();
        self.on_losses(now, &losses, context);
    }

    fn on_losses<T>(&mut self, now: Instant, losses: &Losses, context: &mut impl Context<T>) {
        self.budget.release(losses.released);
        self.budget.note_idle(now);
        if losses.black_hole {
            self.on_mtu(context.datagram_size());
        }
        let Some(sample) = losses.sample else { return };
        let sample = LossSample {
            bytes_in_flight: self.in_flight(),
            persistent: losses.persistent.is_established(),
            ..sample
        };
        let reaction = self.on_loss(now, &sample);
        self.note_congestion(losses.oldest_sent_at.unwrap_or(sample.latest_sent_at));
        let event = CongestionEvent::Lost(sample, reaction);
        context.on_congestion(now, &event, self.controller_mut());
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
