//! Random calls to a controller.

use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg32;

use super::rtt_of;
use crate::Instant;
use crate::congestion::{Controller, PathModel};
use crate::samples::{AckSample, CeSample, LossSample, PacketLoss, RateSample, SentSample};

#[derive(Debug)]
pub(super) enum Call {
    Sent(SentSample),
    Ack(AckSample),
    PacketLoss(PacketLoss),
    Loss(LossSample),
    Ce(CeSample),
    Spurious(Instant),
    Idle(Duration),
    Mtu(u64),
    Window(u64),
    Share(f64),
    Bandwidth(u64),
    EnterSlowStart,
    ExitSlowStart,
    Ssthresh(u64),
    Seed { model: PathModel, first_rate: u64 },
}

/// A number whose size is random: from 0 to 2^62.
pub(super) fn magnitude(rng: &mut Pcg32) -> u64 {
    rng.random::<u64>() >> rng.random_range(2..64_u32)
}

/// A valid share, or any number.
fn share(rng: &mut Pcg32) -> f64 {
    if rng.random() {
        1.0 / f64::from(rng.random_range(1..=16_u32))
    } else {
        f64::from_bits(rng.random())
    }
}

impl Call {
    pub(super) fn random(rng: &mut Pcg32, now: Instant, mtu: &mut u64) -> Self {
        let bytes = magnitude(rng);
        let number = magnitude(rng);
        let sent_at = now - Duration::from_nanos(magnitude(rng) % 1_000_000_000);
        let rtt = Duration::from_nanos(magnitude(rng));
        match rng.random_range(0..26_u32) {
            0..4 => Self::Sent(SentSample {
                packet_number: number,
                bytes,
                bytes_in_flight: magnitude(rng),
                app_limited: rng.random(),
            }),
            4..10 => Self::Ack(AckSample {
                bytes,
                bytes_in_flight: magnitude(rng),
                prior_in_flight: magnitude(rng),
                largest_acked: number,
                largest_sent: number.saturating_add(magnitude(rng)),
                largest_acked_sent_at: sent_at,
                rtt: rtt_of(rtt),
                rtt_updated: rng.random(),
                rate: rng.random::<bool>().then(|| RateSample {
                    delivered: bytes,
                    interval: rtt,
                    prior_delivered: magnitude(rng),
                    delivered_total: magnitude(rng),
                    in_flight_at_send: magnitude(rng),
                    lost: magnitude(rng),
                    app_limited: rng.random(),
                }),
                app_limited: rng.random(),
            }),
            10..13 => Self::Loss(LossSample {
                bytes,
                packets: number,
                largest_lost: number,
                latest_sent_at: sent_at,
                largest_sent: magnitude(rng),
                bytes_in_flight: magnitude(rng),
                persistent: rng.random_range(0..8_u32) == 0,
            }),
            13 => Self::Ce(CeSample {
                sent_at,
                new_ce: number,
                l4s: number.is_multiple_of(2),
                largest_sent: number,
            }),
            14 => Self::Spurious(sent_at),
            15 => Self::Idle(rtt),
            16 => {
                *mtu = rng.random_range(1200..=65_527);
                Self::Mtu(*mtu)
            }
            17 => Self::Window(bytes),
            18 => Self::Bandwidth(bytes),
            19 => Self::Share(share(rng)),
            20 => Self::Ssthresh(bytes),
            21..24 => Self::PacketLoss(PacketLoss {
                packet_number: number,
                bytes,
                sent_at,
                in_flight_at_send: magnitude(rng),
                lost: magnitude(rng),
                delivered_total: magnitude(rng),
                app_limited: rng.random(),
            }),
            24 => Self::Seed {
                model: PathModel {
                    bandwidth: number,
                    is_limit: rng.random(),
                    min_rtt: rtt,
                    random_loss: share(rng),
                },
                first_rate: bytes,
            },
            _ if rng.random() => Self::EnterSlowStart,
            _ => Self::ExitSlowStart,
        }
    }

    pub(super) fn make(&self, controller: &mut dyn Controller, now: Instant) {
        match self {
            Self::Sent(sent) => controller.on_sent(now, sent),
            Self::Ack(ack) => controller.on_ack(now, ack),
            Self::PacketLoss(lost) => controller.on_packet_lost(now, lost),
            Self::Loss(loss) => controller.on_loss(now, loss),
            Self::Ce(ce) => controller.on_ce(now, ce),
            Self::Spurious(sent_at) => controller.on_spurious_loss(now, *sent_at),
            Self::Idle(idle) => controller.on_idle(now, *idle),
            Self::Mtu(mtu) => controller.on_mtu(*mtu),
            Self::Window(bytes) => controller.set_window(*bytes),
            Self::Share(share) => controller.set_share(*share),
            Self::Bandwidth(rate) => controller.set_bandwidth(*rate),
            Self::EnterSlowStart => controller.enter_slow_start(),
            Self::ExitSlowStart => controller.exit_slow_start(),
            Self::Ssthresh(bytes) => controller.set_ssthresh(*bytes),
            Self::Seed { model, first_rate } => {
                controller.seed(now, model, *first_rate);
            }
        }
    }

    /// Whether a second call has no effect.
    pub(super) fn is_idempotent(&self) -> bool {
        matches!(
            self,
            Self::Mtu(_)
                | Self::Window(_)
                | Self::Share(_)
                | Self::Bandwidth(_)
                | Self::EnterSlowStart
                | Self::ExitSlowStart
                | Self::Ssthresh(_)
                | Self::Seed { .. }
        )
    }

    /// Checks the effect of the call on slow start; `before` and `after` are whether the controller was in it.
    pub(super) fn check_state(&self, before: bool, after: bool, seed: u64) {
        let obeys = match self {
            Self::EnterSlowStart => after,
            Self::ExitSlowStart => !after,
            Self::Share(_) | Self::Bandwidth(_) | Self::Seed { .. } => before == after,
            Self::Window(_) => before || !after,
            _ => true,
        };
        assert!(
            obeys,
            "slow start was {before} and is {after} after {self:?} (seed {seed})"
        );
    }
}
