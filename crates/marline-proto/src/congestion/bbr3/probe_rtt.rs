//! Measuring the delay of the drained path (section 5.3.4), and restarting from idle (section 5.4).

use std::time::Duration;

use super::{Bbr3, ProbeBwPhase, State};
use crate::Instant;

/// Time for which the path is kept drained (`BBR.ProbeRTTDuration`).
const DURATION: Duration = Duration::from_millis(200);

/// The window during the measurement, in bandwidth-delay products (`BBR.ProbeRTTCwndGain`).
pub(super) const WINDOW_GAIN: f64 = 0.5;

/// A measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it ends; `None` until the path is drained.
    until: Option<Instant>,
    round_passed: bool,
    /// Packets sent when this much had been delivered are held back: their samples are app-limited.
    limited_from: u64,
    /// The end of that range.
    limited_until: u64,
}

impl ProbeRtt {
    /// Whether a measurement held back a packet that was sent when `delivered` bytes had been delivered.
    pub(super) fn limits(&self, delivered: u64) -> bool {
        self.limited_until > 0 && (self.limited_from..=self.limited_until).contains(&delivered)
    }
}

impl Bbr3 {
    /// Begins a measurement if the last one has `expired`, and continues a running one. With rare measurements none
    /// interrupts startup, which on long paths takes longer than they are valid.
    pub(super) fn check_probe_rtt(&mut self, now: Instant, expired: bool) {
        let may_begin = !self.config.rare_probe_rtt || self.full_pipe.is_reached();
        if expired && may_begin && !self.was_idle && self.state != State::ProbeRtt {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt {
                limited_from: self.delivered,
                ..ProbeRtt::default()
            };
            self.cycle.stop();
            self.restart_round();
        }
        if self.state == State::ProbeRtt {
            self.go_on_measuring(now);
        }
    }

    fn go_on_measuring(&mut self, now: Instant) {
        self.probe_rtt.limited_until = self.delivered.saturating_add(self.in_flight).max(1);
        if self.probe_rtt.until.is_none() {
            if self.in_flight <= self.probe_rtt_window() {
                self.probe_rtt.until = Some(now + DURATION);
                self.restart_round();
            }
            return;
        }
        self.probe_rtt.round_passed |= self.round_begins;
        if self.probe_rtt.round_passed {
            self.end_measuring(now);
        }
    }

    /// Ends the measurement if it has lasted long enough. The cycle restarts, cautiously, and without draining an
    /// already drained path.
    fn end_measuring(&mut self, now: Instant) {
        if self.probe_rtt.until.is_none_or(|until| now <= until) {
            return;
        }
        self.min_rtt.schedule_probe(now);
        self.restore_window();
        self.bounds.reset_short_term();
        if self.full_pipe.is_reached() {
            self.start_down(now);
            self.state = State::ProbeBw(ProbeBwPhase::Cruise);
        } else {
            self.state = State::Startup;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.product(WINDOW_GAIN).max(self.minimum_window())
    }

    /// Sending resumes with nothing in flight: at the bandwidth, without acceleration.
    pub(super) fn restart_from_idle(&mut self, now: Instant) {
        self.was_idle = true;
        self.extra_acked.restart(now);
        self.fast_reprobe.restart(now);
        self.cross_traffic.restart(now);
        match self.state {
            State::ProbeBw(_) => self.pace_with(1.0),
            State::ProbeRtt => self.end_measuring(now),
            State::Startup | State::Drain { .. } => {}
        }
    }
}
