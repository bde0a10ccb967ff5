//! Prague: a scalable response to the marks of short queues (draft-briscoe-iccrg-prague-congestion-control-04), derived
//! from DCTCP (RFC 8257), that meets the requirements of RFC 9331, section 4.3 on senders of ECT(1).
//!
//! - The part of bytes that is marked is averaged once a round trip (`alpha`); a round with marks takes half of that part
//!   off the window.
//! - What arrives without a mark grows the window by a datagram a round trip, marks or not.
//! - A loss is answered as NewReno does, and so is a mark of packets that did not carry ECT(1).
//! - On paths of less than 25 ms, some time after slow start has ended, growth and reductions are those of a path of
//!   25 ms that has the same rate, so that a short path takes no more than a long one.

use std::sync::Arc;
use std::time::Duration;

use super::loss_based::{Growth, GrowthSample, LossBasedController};
use super::{Algorithm, Controller, ControllerConfig, ControllerFactory, Coordinated, Phase};
use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, RttView, SentSample};
use crate::settings::Entry;

/// Its name in settings.
pub(super) const ENTRY: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain(
    "prague",
    "newreno, but it answers marks of short queues in proportion to the part of packets that is marked (L4S)",
    |()| Arc::new(Algorithm::Prague),
);

/// Weight of a round in the average: as in the draft (section 2.4.2) and DCTCP.
const GAIN: f64 = 1.0 / 16.0;

/// The round-trip time that shorter paths emulate (section 2.4.4).
const VIRTUAL_RTT: Duration = Duration::from_millis(25);

/// Rounds after slow start until they do: short transfers have nothing to share (Linux: 500).
const ROUNDS_BEFORE: u32 = 500;

/// The window grows as on a path without marks, and is reduced in proportion to the part of packets marked.
#[derive(Debug)]
pub struct Prague {
    window: LossBasedController<Unmarked>,
    max_datagram_size: u64,
    /// The average part that is marked; `None` before the first mark.
    alpha: Option<f64>,
    /// Marked bytes that no acknowledgment has been compared with.
    marked_now: u64,
    round: Round,
    /// Rounds since slow start ended.
    rounds: u32,
    /// When marks last reduced the window.
    reduced_at: Option<Instant>,
    smoothed_rtt: Duration,
}

/// Bytes delivered and marked since the average was updated.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Packets sent from then on end the round.
    began: Option<Instant>,
    arrived: u64,
    marked: u64,
}

impl Prague {
    /// A controller for a new path.
    pub fn new(config: ControllerConfig) -> Self {
        Self {
            max_datagram_size: config.max_datagram_size,
            window: LossBasedController::new(config),
            alpha: None,
            marked_now: 0,
            round: Round::default(),
            rounds: 0,
            reduced_at: None,
            smoothed_rtt: Duration::ZERO,
        }
    }

    /// The round-trip time used for growth and reductions.
    fn effective_rtt(&self) -> Duration {
        match self.rounds >= ROUNDS_BEFORE {
            true => self.smoothed_rtt.max(VIRTUAL_RTT),
            false => self.smoothed_rtt,
        }
    }

    /// Growth of a round trip in datagrams. With the square, the rate of a short path grows by as much in a second as
    /// that of one with the effective round-trip time.
    fn growth(&self) -> f64 {
        let effective = self.effective_rtt();
        if effective.is_zero() {
            return 1.0;
        }
        let part = self.smoothed_rtt.as_secs_f64() / effective.as_secs_f64();
        part * part
    }

    /// Counts the bytes of an acknowledgment; at the end of a round, updates the average.
    fn count(&mut self, now: Instant, ack: &AckSample, marked: u64) {
        self.round.arrived = self.round.arrived.saturating_add(ack.bytes);
        self.round.marked = self.round.marked.saturating_add(marked);
        let Some(began) = self.round.began else {
            self.round.began = Some(now);
            return;
        };
        let is_over = ack.largest_acked_sent_at >= began && now >= began + self.effective_rtt();
        if !is_over || self.round.arrived == 0 {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let part = self.round.marked as f64 / self.round.arrived as f64;
            *alpha += GAIN * (part.min(1.0) - *alpha);
        }
        self.rounds = match self.window.in_slow_start() {
            true => 0,
            false => self.rounds.saturating_add(1),
        };
        self.round = Round {
            began: Some(now),
            ..Round::default()
        };
    }

    /// Marks reduce the window once a round.
    fn answer_marks(&mut self, now: Instant, sent_at: Instant) {
        // As in DCTCP: nothing is known of the queue yet, so the first mark counts as if all packets were marked.
        let alpha = *self.alpha.get_or_insert(1.0);
        let is_answered = self.reduced_at.is_some_and(|reduced_at| {
            sent_at <= reduced_at || now < reduced_at + self.effective_rtt()
        });
        if !is_answered
            && self
                .window
                .reduce_in_proportion(now, sent_at, 1.0 - alpha / 2.0)
        {
            self.reduced_at = Some(now);
        }
    }
}

impl Controller for Prague {
    fn on_sent(&mut self, now: Instant, sent: &SentSample) {
        self.window.on_sent(now, sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        self.smoothed_rtt = ack.rtt.smoothed;
        let marked = std::mem::take(&mut self.marked_now).min(ack.bytes);
        self.count(now, ack, marked);
        self.window.growth.datagrams = self.growth();
        let unmarked = AckSample {
            bytes: ack.bytes - marked,
            ..*ack
        };
        self.window.on_ack(now, &unmarked);
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.window.on_loss(now, loss);
    }

    fn on_ce(&mut self, now: Instant, ce: &CeSample) {
        if !ce.l4s {
            self.window.on_ce(now, ce);
            return;
        }
        let bytes = ce.new_ce.saturating_mul(self.max_datagram_size);
        self.marked_now = self.marked_now.saturating_add(bytes);
        self.answer_marks(now, ce.sent_at);
    }

    fn on_spurious_loss(&mut self, now: Instant, sent_at: Instant) {
        self.window.on_spurious_loss(now, sent_at);
    }

    fn on_idle(&mut self, now: Instant, idle: Duration) {
        self.window.on_idle(now, idle);
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.max_datagram_size = mtu.max(1);
        self.window.on_mtu(mtu);
    }

    fn window(&self) -> u64 {
        self.window.window()
    }

    /// One window per round trip, and two in slow start: bursts of more would be marked (section 2.4.5).
    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        let rate = self.window.pacing_rate(rtt);
        match self.in_slow_start() {
            true => rate,
            false => (rate / 5).saturating_mul(4).max(1),
        }
    }

    fn phase(&self) -> Phase {
        self.window.phase()
    }

    fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh()
    }

    fn is_scalable(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        self.window.name()
    }
}

impl Coordinated for Prague {
    fn set_window(&mut self, bytes: u64) {
        self.window.set_window(bytes);
    }

    fn set_share(&mut self, share: f64) {
        self.window.set_share(share);
    }

    fn enter_slow_start(&mut self) {
        self.window.enter_slow_start();
    }

    fn exit_slow_start(&mut self) {
        self.window.exit_slow_start();
    }

    fn set_ssthresh(&mut self, bytes: u64) {
        self.window.set_ssthresh(bytes);
    }
}

/// Growth by unmarked packets.
#[derive(Clone, Copy, Debug)]
struct Unmarked {
    /// Growth of a round trip, in datagrams.
    datagrams: f64,
    /// Growth too small for a byte.
    fraction: f64,
}

impl Default for Unmarked {
    fn default() -> Self {
        Self {
            datagrams: 1.0,
            fraction: 0.0,
        }
    }
}

impl Growth for Unmarked {
    const NAME: &'static str = ENTRY.name;

    /// RFC 9002, section 7.3.2.
    const BACKOFF: f64 = 0.5;

    fn on_congestion(&mut self, _window: u64, _backoff: f64) {
        self.fraction = 0.0;
    }

    fn grow(&mut self, sample: &GrowthSample) -> u64 {
        let part = sample.acked as f64 / sample.window as f64;
        let growth = self.datagrams * sample.unit * part + self.fraction;
        self.fraction = growth.fract();
        sample.window.saturating_add(growth as u64)
    }

    fn on_window_set(&mut self, _before: u64, _after: u64) {}
}

#[cfg(test)]
mod tests;
