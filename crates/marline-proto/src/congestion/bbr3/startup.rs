//! Startup and drain (sections 5.3.1 and 5.3.2).

use super::rows::LostRows;
use super::{Bbr3, State};
use crate::Instant;
use crate::samples::{PacketLoss, RateSample};

/// Ranges of packet numbers that must be lost in a round for startup to end by losses (`BBRStartupFullLossCnt`).
const LOST_RANGES: u32 = 6;

/// Rounds after which drain ends, regardless of the bytes in flight.
const DRAIN_ROUNDS: u64 = 3;

/// Ranges of packet numbers that were lost in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartupLosses {
    ranges: u32,
    rows: LostRows,
}

impl StartupLosses {
    /// Whether they are enough to end startup.
    fn are_many(&self) -> bool {
        self.ranges >= LOST_RANGES
    }

    pub(super) fn on_lost(&mut self, packet_number: u64) {
        if !self.rows.on_lost(packet_number) {
            self.ranges = self.ranges.saturating_add(1);
        }
    }
}

impl Bbr3 {
    /// Whether the path is full, by a plateau of the bandwidth, by losses or by marks.
    pub(super) fn check_startup(&mut self, rate: &RateSample) {
        if self.latest.round_ended() {
            let are_many = std::mem::take(&mut self.startup_losses).are_many();
            let is_too_high = self.is_loss_too_high(rate.lost, rate.in_flight_at_send);
            if are_many && is_too_high && self.may_overflow() && !self.full_pipe.is_reached() {
                self.end_startup_by_congestion();
            }
        }
        if self.state == State::Startup && self.full_pipe.is_reached() {
            self.enter_drain();
        }
    }

    /// Whether losses of startup can come from a full buffer: with random loss, only if there is a queue or no
    /// growth.
    fn may_overflow(&self) -> bool {
        !self.config.random_loss || self.meets_queue() || !self.full_pipe.is_growing()
    }

    /// With random loss, startup ends as soon as many packets were lost beside a queue, not at the end of the
    /// round: the queue shows their cause, and packets sent until then are lost as well.
    pub(super) fn check_startup_overflow(&mut self, lost: &PacketLoss) {
        let is_too_high = self.is_loss_too_high(lost.lost, lost.in_flight_at_send);
        let are_many = self.startup_losses.are_many();
        if are_many && is_too_high && self.meets_queue() && !self.full_pipe.is_reached() {
            self.end_startup_by_congestion();
        }
    }

    /// Startup sent too much: the delivery of the path is its capacity.
    pub(super) fn end_startup_by_congestion(&mut self) {
        self.undo.returns_to(State::Startup);
        self.full_pipe.set_reached(true);
        self.bounds.in_flight = self.product(1.0).max(self.latest.volume());
    }

    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain {
            since: self.rounds.count(),
        };
    }

    /// Ends drain once the queue is empty.
    pub(super) fn check_drain(&mut self, now: Instant) {
        let State::Drain { since } = self.state else {
            return;
        };
        let is_late = self.rounds.count() > since + DRAIN_ROUNDS;
        if is_late || self.in_flight <= self.in_flight_for(1.0) {
            self.start_down(now);
        }
    }
}
