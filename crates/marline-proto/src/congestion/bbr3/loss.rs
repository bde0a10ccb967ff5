//! Losses, marks and spurious losses (sections 5.5.10, 5.5.11 and 5.6.4.4).

use super::bounds::{BETA, Bounds, UNBOUNDED, scale};
use super::{Bbr3, ProbeBwPhase, State};
use crate::Instant;
use crate::samples::{PacketLoss, RateSample};

/// The loss rate tolerated in a round while the path is probed (`BBR.LossThresh`).
pub(super) const LOSS_THRESHOLD: f64 = 0.02;

/// Recovery from losses, and the window to return to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRecovery {
    /// When the latest recovery began: losses of packets sent until then belong to it.
    start: Option<Instant>,
    is_active: bool,
    /// Whether persistent congestion collapsed the window.
    is_collapsed: bool,
    /// The latest window that neither recovery nor a measurement of the delay had reduced (`BBR.prior_cwnd`).
    prior_window: u64,
}

impl LossRecovery {
    pub(super) fn is_collapsed(&self) -> bool {
        self.is_collapsed
    }

    fn covers(&self, sent_at: Instant) -> bool {
        self.start.is_some_and(|start| sent_at <= start)
    }

    fn begin(&mut self, now: Instant) {
        self.start = Some(now);
        self.is_active = true;
    }

    /// A coordinator set the window: recovery has ended.
    pub(super) fn set_window(&mut self, window: u64) {
        self.is_active = false;
        self.is_collapsed = false;
        self.prior_window = window;
    }
}

/// The state changed by losses, to be restored if they were spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    saved: Option<Bounds>,
    /// The state that losses ended.
    state: Option<State>,
}

impl Undo {
    fn save(&mut self, bounds: Bounds) {
        *self = Self {
            saved: Some(bounds),
            state: None,
        };
    }

    /// Records that losses end `state`.
    pub(super) fn returns_to(&mut self, state: State) {
        if self.saved.is_some() {
            self.state = Some(state);
        }
    }

    /// Forbids the restoration, since marks require the same response.
    pub(super) fn forbid(&mut self) {
        *self = Self::default();
    }
}

impl Bbr3 {
    /// Whether `lost` bytes are too many for a round that began with `in_flight` bytes in flight.
    pub(super) fn is_loss_too_high(&self, lost: u64, in_flight: u64) -> bool {
        match self.config.random_loss {
            true => self.exceeds_random_loss(lost, in_flight, self.cross_traffic.loss_threshold()),
            false => lost as f64 > in_flight as f64 * self.cross_traffic.loss_threshold(),
        }
    }

    /// The bytes in flight at which losses crossed the threshold, within the packet that was lost.
    fn in_flight_at_loss(&self, lost: &PacketLoss) -> u64 {
        let in_flight_before = lost.in_flight_at_send.saturating_sub(lost.bytes) as f64;
        let lost_before = lost.lost.saturating_sub(lost.bytes) as f64;
        let threshold = self.cross_traffic.loss_threshold() + self.random_loss.share();
        let prefix = (threshold * in_flight_before - lost_before) / (1.0 - threshold);
        (in_flight_before + prefix.max(0.0)) as u64
    }

    pub(super) fn handle_lost_packet(&mut self, now: Instant, lost: &PacketLoss) {
        if !self.recovery.covers(lost.sent_at) {
            self.save_window();
            self.recovery.begin(now);
            self.undo.save(self.bounds);
        }
        self.latest.on_loss(self.delivered);
        self.startup_losses.on_lost(lost.packet_number);
        self.count_lost(lost.packet_number, lost.bytes);
        self.cross_traffic.on_lost(lost.sent_at, lost.bytes);
        self.fast_reprobe.on_full();
        if self.config.random_loss {
            self.check_startup_overflow(lost);
        }
        if self.cycle.is_sampling() {
            self.note_probe_loss(lost);
        }
        if self.cycle.is_sampling() && self.is_loss_too_high(lost.lost, lost.in_flight_at_send) {
            let in_flight = self.in_flight_at_loss(lost);
            self.handle_too_high(now, in_flight, lost.app_limited);
        }
    }

    /// A probe with `in_flight` bytes caused too many losses or marks. If sending was app-limited, more might fit.
    fn handle_too_high(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        self.cycle.on_too_high();
        self.note_congestion();
        if !app_limited {
            let bound = in_flight.max(scale(self.target_in_flight(), BETA));
            self.bounds.in_flight = scale(bound, self.cross_traffic.kept_of_bound());
        }
        if self.state == State::ProbeBw(ProbeBwPhase::Up) {
            self.undo.returns_to(self.state);
            self.start_down(now);
        }
    }

    /// Processes the marks of a round that ends.
    pub(super) fn update_marks(&mut self, now: Instant, rate: &RateSample) {
        let threshold = self.mark_threshold();
        if !self.round_begins || !self.marks.end_round(self.delivered, threshold) {
            return;
        }
        if self.cycle.is_sampling() {
            self.handle_too_high(now, rate.in_flight_at_send, rate.app_limited);
        }
        if !self.full_pipe.is_reached() && self.marks.end_startup() {
            self.end_startup_by_congestion();
        }
    }

    /// Lowers the short-term bounds for losses and marks, once per round, unless the path is probed.
    pub(super) fn answer_congestion(&mut self, now: Instant, rate: &RateSample) {
        let has_marks = self.marks.in_round();
        let mut has_loss = self.latest.has_loss();
        let is_queued = self.random_loss.end_round();
        if self.config.random_loss {
            has_loss &= self.is_round_congested(rate, is_queued);
        }
        if !self.is_probing_bandwidth() && (has_loss || has_marks) {
            self.note_congestion();
            self.bounds.begin_short_in_flight(self.window);
            let unmarked = match has_marks {
                true => scale(self.bounds.short_in_flight, self.marks.remainder()),
                false => UNBOUNDED,
            };
            if has_loss || self.marks.are_like_losses() {
                self.answer_loss(now, rate);
            }
            self.bounds.short_in_flight = self.bounds.short_in_flight.min(unmarked);
        }
        let is_cruising = self.state == State::ProbeBw(ProbeBwPhase::Cruise);
        if self.config.coexist {
            self.cross_traffic
                .end_round(now, is_cruising, self.min_rtt.get());
        }
        self.fast_reprobe.end_round(now, is_cruising);
        if !has_loss && !has_marks {
            self.widen_short_term();
        }
        self.latest.clear_loss();
        self.marks.clear_round();
    }

    /// Lowers the short-term bounds for the losses of a round.
    fn answer_loss(&mut self, now: Instant, rate: &RateSample) {
        self.bounds
            .begin_short_term(self.bandwidth.get(), self.window);
        let mut kept = 1.0;
        if self.config.coexist
            && let Some(beside_others) = self.kept_beside_others(rate)
        {
            self.cross_traffic.on_seen(now);
            kept = beside_others;
        }
        let (bandwidth, volume) = (self.latest.bandwidth(), self.latest.volume());
        self.bounds
            .reduce(scale(bandwidth, kept), scale(volume, kept));
    }

    /// Persistent congestion. The short-term bound begins at the previous window, not at the collapsed one (as in
    /// Linux).
    pub(super) fn collapse(&mut self, now: Instant) {
        self.save_window();
        self.recovery.begin(now);
        if !self.is_probing_bandwidth() {
            let before = self.recovery.prior_window;
            self.bounds.begin_short_in_flight(before);
        }
        self.recovery.is_collapsed = true;
        self.put(0);
    }

    /// A packet sent at `sent_at` was acknowledged: recovery ends if it was sent since recovery began.
    pub(super) fn leave_recovery(&mut self, sent_at: Instant) {
        if !self.recovery.is_active || self.recovery.covers(sent_at) {
            return;
        }
        self.recovery.is_active = false;
        if !std::mem::take(&mut self.recovery.is_collapsed) {
            self.restore_window();
        }
    }

    pub(super) fn save_window(&mut self) {
        let is_good = !self.recovery.is_active && self.state != State::ProbeRtt;
        self.recovery.prior_window = match is_good {
            true => self.window,
            false => self.window.max(self.recovery.prior_window),
        };
    }

    pub(super) fn restore_window(&mut self) {
        self.put(self.window.max(self.recovery.prior_window));
    }

    /// All losses of the latest recovery were spurious: returns to the state that they ended, and probes again.
    pub(super) fn undo_losses(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        let Some(saved) = undo.saved else { return };
        self.restore_window();
        self.recovery.is_collapsed = false;
        self.latest.clear_loss();
        self.full_pipe.restart(0);
        self.bounds.restore(&saved);
        let is_measuring = self.state == State::ProbeRtt;
        match undo.state.filter(|state| *state != self.state) {
            Some(State::Startup) => {
                self.full_pipe.set_reached(false);
                if !is_measuring {
                    self.state = State::Startup;
                }
            }
            Some(_) if !is_measuring => self.start_refill(),
            _ => {}
        }
    }
}
