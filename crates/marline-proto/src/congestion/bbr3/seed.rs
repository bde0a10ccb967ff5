//! Beginning from a model that another connection measured. Not of the draft.
//!
//! The seeded bandwidth is a hypothesis and never becomes an estimate, which consists of delivery rates alone.
//!
//! | stage | rate and window | ends |
//! | --- | --- | --- |
//! | sending | at least the first rate, and its bytes of a round trip | with the first acknowledgment of a packet sent since |
//! | judging | those of startup; the window grows by the bytes acknowledged, as in slow start | when all packets of that round trip are acknowledged |
//! | retreating | the delivery so far | likewise |
//! | approaching | those of startup, but no more than a quarter above the seeded bandwidth | when that is delivered and a packet meets a queue, or when clearly more is delivered, which disproves the limit |
//!
//! In the first two, losses in excess of random loss begin the retreat: a smaller part is enough beside a queue. After it, startup
//! ends at the delivery rate of the path. If the seed was only a lower bound, or the first rate was not delivered, startup
//! continues without it: a delay alone does not prove congestion where a radio's delays vary, and startup soon finds that the
//! bandwidth stops growing.

use super::loss::LOSS_THRESHOLD;
use super::window::product;
use super::{Bbr3, State};
use crate::Instant;
use crate::congestion::PathModel;
use crate::samples::{AckSample, PacketLoss};

/// The part of the first rate that must be delivered for the seed to remain valid.
const DELIVERED: f64 = 0.75;

/// The part of the seeded bandwidth whose delivery, beside a queue, ends startup.
const REACHED: f64 = 0.9;

/// The part of the seeded bandwidth that startup does not exceed, and whose delivery shows that more is available.
const APPROACH: f64 = 1.25;
const EXCEEDED: f64 = 1.125;

/// The loss rate in excess of random loss that is tolerated without a queue.
const TOLERATED_LOSS: f64 = 0.125;

/// A model to begin from, until measurements have replaced it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed {
    model: PathModel,
    /// Bytes per second.
    first_rate: u64,
    /// The packets of the round trip at that rate.
    packets: Option<SeededPackets>,
    lost: u64,
    stage: SeedStage,
}

#[derive(Clone, Copy, Debug)]
struct SeededPackets {
    first: u64,
    last: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeedStage {
    Sending,
    Judging,
    Retreating,
    Approaching,
}

impl Seed {
    pub(super) fn on_sent(&mut self, packet_number: u64, bytes: u64) {
        if self.stage != SeedStage::Sending {
            return;
        }
        let packets = self.packets.get_or_insert(SeededPackets {
            first: packet_number,
            last: packet_number,
            bytes: 0,
        });
        packets.last = packets.last.max(packet_number);
        packets.bytes = packets.bytes.saturating_add(bytes);
    }

    /// The smallest sending rate, regardless of measurements, in bytes per second.
    pub(super) fn least_rate(&self) -> Option<u64> {
        (self.stage == SeedStage::Sending).then_some(self.first_rate)
    }

    /// The largest rate of startup, in bytes per second, unless the `measured` rate exceeds it.
    pub(super) fn largest_rate(&self, measured: u64) -> Option<u64> {
        match self.stage {
            SeedStage::Sending => Some(self.first_rate.max(measured)),
            SeedStage::Retreating => Some(measured),
            SeedStage::Judging | SeedStage::Approaching => {
                let most = (self.model.bandwidth as f64 * APPROACH) as u64;
                (self.model.is_limit && measured <= most).then_some(most)
            }
        }
    }

    /// Whether the window grows by the bytes acknowledged of the first round trip: the window from the measured bandwidth lags
    /// behind by that.
    pub(super) fn grows(&self) -> bool {
        self.stage == SeedStage::Judging
    }

    fn holds(&self, packet_number: u64) -> bool {
        self.packets
            .is_some_and(|packets| (packets.first..=packets.last).contains(&packet_number))
    }
}

impl Bbr3 {
    /// Begins from `model` at `first_rate`; returns whether it does: only in startup, and only once.
    pub(super) fn begin_from(&mut self, now: Instant, model: &PathModel, first_rate: u64) -> bool {
        let is_ignorant = self.state == State::Startup && !self.full_pipe.is_reached();
        if !is_ignorant || self.is_seeded || first_rate == 0 || !model.is_sound() {
            return false;
        }
        self.is_seeded = true;
        self.min_rtt.update(now, Some(model.min_rtt));
        self.random_loss.seed(model.random_loss);
        self.seed = Some(Seed {
            model: *model,
            first_rate,
            packets: None,
            lost: 0,
            stage: SeedStage::Sending,
        });
        let delay = self.min_rtt.get().unwrap_or(model.min_rtt);
        self.put(self.window.max(product(first_rate, delay, 1.0)));
        self.pacing_rate = self.pacing_rate.max(Some(first_rate));
        true
    }

    /// Processes acknowledgments of the packets sent at the first rate.
    pub(super) fn update_seed(&mut self, ack: &AckSample) {
        let Some(mut seed) = self.seed.take() else {
            return;
        };
        if self.full_pipe.is_reached() {
            return;
        }
        let Some(packets) = seed.packets else {
            self.seed = Some(seed);
            return;
        };
        if seed.stage == SeedStage::Sending && ack.largest_acked >= packets.first {
            seed.stage = SeedStage::Judging;
        }
        let bandwidth = self.bandwidth.get();
        let all_acked = ack.largest_acked >= packets.last;
        match seed.stage {
            SeedStage::Judging if all_acked => {
                let was_delivered = bandwidth as f64 >= seed.first_rate as f64 * DELIVERED;
                if !was_delivered || !seed.model.is_limit {
                    return;
                }
                seed.stage = SeedStage::Approaching;
            }
            SeedStage::Retreating if all_acked => {
                self.end_startup_by_congestion();
                return;
            }
            _ => {}
        }
        let delivered = bandwidth as f64 / seed.model.bandwidth as f64;
        let is_approaching = seed.stage == SeedStage::Approaching;
        if is_approaching && delivered >= EXCEEDED {
            return;
        }
        if is_approaching && delivered >= REACHED && self.meets_queue() {
            self.full_pipe.set_reached(true);
            return;
        }
        self.seed = Some(seed);
    }

    /// A packet was lost: if it was sent at the first rate, that rate may have been too high.
    pub(super) fn note_seed_loss(&mut self, lost: &PacketLoss) {
        let Some(mut seed) = self.seed else {
            return;
        };
        let is_open = matches!(seed.stage, SeedStage::Sending | SeedStage::Judging);
        let Some(packets) = seed
            .packets
            .filter(|_| is_open && seed.holds(lost.packet_number))
        else {
            return;
        };
        seed.lost = seed.lost.saturating_add(lost.bytes);
        let margin = match self.meets_queue() {
            true => LOSS_THRESHOLD,
            false => TOLERATED_LOSS,
        };
        if self.exceeds_random_loss(seed.lost, packets.bytes, margin) {
            seed.stage = SeedStage::Retreating;
            self.pacing_rate = Some(self.modelled_pacing_rate(1.0).max(1));
            self.put(self.window.min(self.max_in_flight()));
        }
        self.seed = Some(seed);
    }
}
