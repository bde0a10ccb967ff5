//! Probing for bandwidth (section 5.3.3).

use std::time::Duration;

use rand::RngExt;

use super::bounds::UNBOUNDED;
use super::{Bbr3, State};
use crate::Instant;
use crate::samples::{AckSample, RateSample};

/// Time between probes: from 2 to 3 seconds.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Most rounds between probes: a Reno flow with a window of as many datagrams loses as often.
const RENO_ROUNDS: u64 = 63;

/// A phase of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeBwPhase {
    /// Drains the queue of the probe, and leaves headroom.
    Down,
    /// Sends at the delivery rate.
    Cruise,
    /// Fills the path up to its bounds.
    Refill,
    /// Searches for more bandwidth.
    Up,
}

/// The state of acknowledgments for the latest probe (`BBR.ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Arriving,
    Stopping,
}

/// The state of the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    feedback: Feedback,
    /// Whether samples are of packets sent while probing, and the probe is not answered yet.
    is_sampling: bool,
    /// Bytes acknowledged since the long-term bound was raised.
    acked: u64,
    /// Bytes to be acknowledged before it is raised by a datagram.
    acked_per_datagram: u64,
    /// Rounds of this probe in which it was raised.
    up_rounds: u32,
    pub(super) rounds_since_up: u64,
    began: Instant,
    pub(super) wait: Duration,
    /// Whether the latest probe caused too many losses.
    pub(super) went_too_high: bool,
    /// Whether it ended early because the one before had.
    pub(super) was_precautionary: bool,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            feedback: Feedback::None,
            is_sampling: false,
            acked: 0,
            acked_per_datagram: UNBOUNDED,
            up_rounds: 0,
            rounds_since_up: 0,
            began: Instant::EPOCH,
            wait: Duration::ZERO,
            went_too_high: false,
            was_precautionary: false,
        }
    }
}

impl Cycle {
    pub(super) fn on_round(&mut self) {
        self.rounds_since_up += 1;
    }

    pub(super) fn is_sampling(&self) -> bool {
        self.is_sampling
    }

    /// The probe caused too many losses, which are answered once.
    pub(super) fn on_too_high(&mut self) {
        self.went_too_high = true;
        self.is_sampling = false;
    }

    /// Whether packets of the stopped probe are still in flight.
    pub(super) fn is_stopping(&self) -> bool {
        self.feedback == Feedback::Stopping
    }

    /// Probing stops, but its packets are still in flight.
    pub(super) fn stop(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Instant) {
        self.latest.reset();
        self.cross_traffic.on_cycle();
        self.fast_reprobe.end_probe(self.bandwidth.get());
        self.cycle.acked_per_datagram = UNBOUNDED;
        self.cycle.rounds_since_up = self.rng.random_range(0..=1);
        self.cycle.wait = self.rng.random_range(SHORTEST_WAIT..LONGEST_WAIT);
        self.cycle.began = now;
        self.cycle.stop();
        self.restart_round();
        self.state = State::ProbeBw(ProbeBwPhase::Down);
    }

    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.acked = 0;
        self.cycle.was_precautionary = false;
        self.cycle.feedback = Feedback::Refilling;
        self.restart_round();
        self.state = State::ProbeBw(ProbeBwPhase::Refill);
    }

    pub(super) fn start_up(&mut self, rate: &RateSample) {
        self.cycle.is_sampling = true;
        self.cycle.feedback = Feedback::Starting;
        self.restart_round();
        self.full_pipe.restart(rate.bytes_per_second());
        self.state = State::ProbeBw(ProbeBwPhase::Up);
        self.raise_slope();
    }

    /// The state machine of section 5.3.3.6.
    pub(super) fn update_cycle(&mut self, now: Instant, ack: &AckSample, rate: &RateSample) {
        if !self.full_pipe.is_reached() || self.adapt_long_term(ack, rate) {
            return;
        }
        let State::ProbeBw(phase) = self.state else {
            return;
        };
        match phase {
            ProbeBwPhase::Down | ProbeBwPhase::Cruise if self.is_time_to_probe(now) => {
                let is_early = self.probes_early(now);
                self.fast_reprobe
                    .begin_probe(is_early, self.bounds.in_flight != UNBOUNDED);
                self.start_refill();
                if self.fast_reprobe.is_open() {
                    self.start_up(rate);
                }
            }
            ProbeBwPhase::Down if self.is_time_to_cruise(ack) => {
                self.state = State::ProbeBw(ProbeBwPhase::Cruise);
            }
            ProbeBwPhase::Refill if self.round_begins => self.start_up(rate),
            ProbeBwPhase::Up if self.is_time_to_go_down(ack, rate) => {
                self.cycle.went_too_high = false;
                self.start_down(now);
            }
            _ => {}
        }
    }

    /// Whether the time, or the rounds after which a Reno flow would have lost a packet, have passed (section 5.3.3.5).
    pub(super) fn is_time_to_probe(&self, now: Instant) -> bool {
        let reno_rounds = self.target_in_flight() / self.max_datagram_size;
        now > self.cycle.began + self.cycle.wait
            || self.probes_early(now)
            || self.cycle.rounds_since_up >= reno_rounds.min(RENO_ROUNDS)
    }

    /// An acknowledgment for ten packets leaves few in flight for a moment, though the queue is not empty: with
    /// `coexist`, the bytes in flight halfway through it count.
    fn is_time_to_cruise(&self, ack: &AckSample) -> bool {
        let product = self.in_flight_at(self.bandwidth.get(), 1.0);
        let in_flight = match self.config.coexist {
            true => self.in_flight.midpoint(ack.prior_in_flight),
            false => self.in_flight,
        };
        in_flight <= self.with_headroom().min(product)
    }

    fn is_time_to_go_down(&mut self, ack: &AckSample, rate: &RateSample) -> bool {
        let reached = ack.prior_in_flight.saturating_add(self.max_datagram_size);
        if self.cycle.went_too_high && reached > self.bounds.in_flight {
            self.cycle.was_precautionary = true;
            return true;
        }
        if self.is_limited_by_long_term() {
            self.full_pipe.restart(rate.bytes_per_second());
            return false;
        }
        self.full_pipe.is_now()
    }

    /// Whether the window was full, and the long-term bound limited it.
    fn is_limited_by_long_term(&self) -> bool {
        self.window_use.is_limited() && self.window >= self.bounds.in_flight
    }

    /// In each round of a probe the long-term bound grows by twice as many datagrams as in the previous one; with other
    /// flows by one, as their windows do.
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.cycle.up_rounds;
        if !self.cross_traffic.is_present() {
            self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        }
        self.cycle.acked_per_datagram = (self.window / growth).max(self.max_datagram_size);
    }

    pub(super) fn raise_long_term(&mut self, acked: u64) {
        if !self.is_limited_by_long_term() {
            return;
        }
        let acked = self.cycle.acked.saturating_add(acked);
        let datagrams = acked / self.cycle.acked_per_datagram;
        self.cycle.acked = acked % self.cycle.acked_per_datagram;
        let growth = datagrams.saturating_mul(self.max_datagram_size);
        self.bounds.in_flight = self.bounds.in_flight.saturating_add(growth);
        if self.round_begins {
            self.raise_slope();
        }
    }

    /// Processes the feedback of a probe, and raises the long-term bound to a safe level. Returns whether a probe
    /// begins.
    fn adapt_long_term(&mut self, ack: &AckSample, rate: &RateSample) -> bool {
        let is_in_cycle = matches!(self.state, State::ProbeBw(_));
        if self.round_begins && self.cycle.feedback == Feedback::Starting {
            self.cycle.feedback = Feedback::Arriving;
        }
        if self.round_begins && self.cycle.feedback == Feedback::Stopping {
            self.cycle.is_sampling = false;
            self.cycle.feedback = Feedback::None;
            if is_in_cycle && !rate.app_limited {
                self.bandwidth.advance();
            }
            if is_in_cycle && self.cycle.was_precautionary && !self.cycle.went_too_high {
                self.start_refill();
                return true;
            }
        }
        let is_safe =
            !self.is_loss_too_high(rate.lost, rate.in_flight_at_send) && !self.marks.is_too_lossy();
        if is_safe && self.bounds.in_flight != UNBOUNDED {
            self.bounds.in_flight = self.bounds.in_flight.max(rate.in_flight_at_send);
            if self.state == State::ProbeBw(ProbeBwPhase::Up) {
                self.raise_long_term(ack.bytes);
            }
        }
        false
    }
}
