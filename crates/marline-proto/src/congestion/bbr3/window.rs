//! Pacing rate, quantum and window (section 5.6).

use std::time::Duration;

use super::bounds::UNBOUNDED;
use super::{Bbr3, ProbeBwPhase, Seed, State, probe_rtt};
use crate::congestion::MAXIMUM_WINDOW;
use crate::samples::{AckSample, RttView};

/// Doubles the sending rate every round: 4 ln 2 (`BBR.StartupPacingGain`).
const STARTUP_PACING_GAIN: f64 = 2.77;

/// Windows a round trip at which slow start is paced.
const SLOW_START_GAIN: f64 = 2.0;

/// With `startup_by_window`: initial windows to be acknowledged until which the window grows regardless of measurements.
const UNMEASURED_WINDOWS: u64 = 3;

const DRAIN_PACING_GAIN: f64 = 0.5;

/// With `startup_by_window`: startup's losses are retransmitted in drain, and short transfers wait for them. Not of the
/// draft.
const SLOW_DRAIN_PACING_GAIN: f64 = 0.85;

const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;

/// Gain of a probe that meets no queue, where nothing was ever lost or the bytes in flight are bounded. Not of the draft.
const OPEN_PACING_GAIN: f64 = 2.0;

/// The window in bandwidth-delay products (`BBR.DefaultCwndGain`), and while probing upwards.
pub(super) const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;

/// Packets leave slightly slower than the bottleneck forwards them (`BBR.PacingMarginPercent`).
const PACING_MARGIN: f64 = 0.99;

/// The smallest window, in datagrams (`BBR.MinPipeCwnd`).
const MINIMUM_PACKETS: u64 = 4;

/// Largest quantum, in bytes: one segmentation offload.
const MAX_QUANTUM: u64 = 64 * 1024;

/// Whether the window was full in this round or the one before (`C.is_cwnd_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    this_round: bool,
    last_round: bool,
}

impl WindowUse {
    pub(super) fn on_sent(&mut self, is_full: bool) {
        self.this_round |= is_full;
    }

    pub(super) fn on_round(&mut self) {
        self.last_round = std::mem::take(&mut self.this_round);
    }

    pub(super) fn is_limited(&self) -> bool {
        self.this_round || self.last_round
    }
}

/// `gain` times the delivery of `bandwidth`, in bytes per second, in `delay`, in bytes.
pub(super) fn product(bandwidth: u64, delay: Duration, gain: f64) -> u64 {
    (gain * bandwidth as f64 * delay.as_secs_f64()) as u64
}

impl Bbr3 {
    pub(super) fn minimum_window(&self) -> u64 {
        MINIMUM_PACKETS.saturating_mul(self.max_datagram_size)
    }

    pub(super) fn put(&mut self, bytes: u64) {
        self.window = bytes.min(MAXIMUM_WINDOW).max(self.minimum_window());
    }

    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain { .. } if self.config.startup_by_window => SLOW_DRAIN_PACING_GAIN,
            State::Drain { .. } => DRAIN_PACING_GAIN,
            State::ProbeBw(ProbeBwPhase::Down) => DOWN_PACING_GAIN,
            State::ProbeBw(ProbeBwPhase::Up) if self.fast_reprobe.is_open() => OPEN_PACING_GAIN,
            State::ProbeBw(ProbeBwPhase::Up) => UP_PACING_GAIN,
            State::ProbeBw(ProbeBwPhase::Cruise | ProbeBwPhase::Refill) | State::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.state {
            State::ProbeBw(ProbeBwPhase::Up) => UP_WINDOW_GAIN,
            State::ProbeRtt => probe_rtt::WINDOW_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    /// The rate before there is a bandwidth (section 5.6.2). Without a round-trip sample it uses the assumed one, not the
    /// millisecond of the draft.
    pub(super) fn initial_pacing_rate(&self, rtt: &RttView) -> u64 {
        let seconds = rtt.smoothed.as_secs_f64().max(1e-6);
        (STARTUP_PACING_GAIN * self.initial_window as f64 / seconds) as u64
    }

    pub(super) fn modelled_pacing_rate(&self, gain: f64) -> u64 {
        (gain * self.bandwidth_now() as f64 * PACING_MARGIN) as u64
    }

    /// Sets the rate with `gain`. Until the path is full, the rate only grows.
    pub(super) fn pace_with(&mut self, gain: f64) {
        let rate = self.modelled_pacing_rate(gain);
        if self.full_pipe.is_reached() || self.pacing_rate.is_some_and(|before| rate > before) {
            self.pacing_rate = Some(rate);
        }
    }

    pub(super) fn update_pacing_rate(&mut self, ack: &AckSample) {
        if self.pacing_rate.is_none() && ack.rtt_updated {
            self.pacing_rate = Some(self.initial_pacing_rate(&ack.rtt));
        }
        if self.bandwidth.get() > 0 {
            self.pace_with(self.pacing_gain());
            self.pace_startup_by_window();
        }
        self.pace_seed();
    }

    /// Applies the limits of a seed, and its rate until packets sent at it are acknowledged.
    fn pace_seed(&mut self) {
        let Some(seed) = &self.seed else { return };
        let most = seed.largest_rate(self.modelled_pacing_rate(1.0));
        let rate = self.pacing_rate.map(|rate| rate.min(most.unwrap_or(rate)));
        self.pacing_rate = rate.max(seed.least_rate());
    }

    /// Paces startup by the window: the bandwidth lags behind it, which would make startup slower than slow start.
    fn pace_startup_by_window(&mut self) {
        let Some(min_rtt) = self.min_rtt.get() else {
            return;
        };
        if self.config.startup_by_window && self.state == State::Startup {
            let rate = SLOW_START_GAIN * self.window as f64 / min_rtt.as_secs_f64().max(1e-6);
            self.pacing_rate = self.pacing_rate.max(Some(rate as u64));
        }
    }

    /// Bytes sent together: the delivery of a millisecond (section 5.6.3). The pacer has quanta of its own; this one is
    /// the offload budget of the window (section 5.5.8).
    pub(super) fn send_quantum(&self) -> u64 {
        let per_millisecond = self.pacing_rate.unwrap_or_default() / 1000;
        per_millisecond
            .min(MAX_QUANTUM)
            .max(self.max_datagram_size.saturating_mul(2))
    }

    /// `bytes`, or at least enough to keep sender and receiver busy.
    fn quantized(&self, bytes: u64) -> u64 {
        let bytes = bytes.max(self.send_quantum()).max(self.minimum_window());
        match self.state {
            State::ProbeBw(ProbeBwPhase::Up) => {
                bytes.saturating_add(self.max_datagram_size.saturating_mul(2))
            }
            _ => bytes,
        }
    }

    pub(super) fn in_flight_at(&self, bandwidth: u64, gain: f64) -> u64 {
        self.quantized(self.product_of(bandwidth, gain))
    }

    pub(super) fn in_flight_for(&self, gain: f64) -> u64 {
        self.in_flight_at(self.bandwidth_now(), gain)
    }

    /// The bytes in flight that full utilization requires (section 5.6.4.2).
    pub(super) fn max_in_flight(&self) -> u64 {
        let product = self.product(self.window_gain());
        self.quantized(product.saturating_add(self.extra_acked.get()))
    }

    /// The largest bytes in flight of startup while the bandwidth still grows, from the delay of the latest round, not
    /// the smallest ever, which may be that of a single early packet. Only the queue of a full path raises all delays of
    /// a round for longer, and then the bandwidth stops growing.
    fn startup_room(&self) -> u64 {
        let rtt = self.round_rtt.last();
        match rtt.filter(|_| self.config.startup_by_window && self.full_pipe.is_growing()) {
            Some(rtt) => {
                let product = product(self.bandwidth_now(), rtt, WINDOW_GAIN);
                self.quantized(product.saturating_add(self.extra_acked.get()))
            }
            None => 0,
        }
    }

    /// Bytes acknowledged before the window follows the model: one round is weak evidence where delays vary.
    fn unmeasured(&self) -> u64 {
        match self.config.startup_by_window {
            true => self.initial_window.saturating_mul(UNMEASURED_WINDOWS),
            false => self.initial_window,
        }
    }

    pub(super) fn with_headroom(&self) -> u64 {
        let headroom = self.cross_traffic.headroom();
        let bound = self.bounds.with_headroom(headroom, self.max_datagram_size);
        bound.max(self.minimum_window())
    }

    /// Updates the window by section 5.6.4.6, without growth while sending is app-limited.
    pub(super) fn update_window(&mut self, ack: &AckSample) {
        let needed = self.max_in_flight();
        let grown = match ack.app_limited {
            true => self.window,
            false => self.window.saturating_add(ack.bytes),
        };
        if self.full_pipe.is_reached() {
            self.put(grown.min(needed));
        } else if self.window < needed.max(self.startup_room())
            || self.delivered_here < self.unmeasured()
            || self.seed.as_ref().is_some_and(Seed::grows)
        {
            self.put(grown);
        }
        self.put(self.window.min(self.bound()));
    }

    /// The largest window that losses and the state allow (sections 5.6.4.5 and 5.6.4.7).
    fn bound(&self) -> u64 {
        let long_term = match self.state {
            State::Startup | State::Drain { .. } => UNBOUNDED,
            State::ProbeBw(ProbeBwPhase::Cruise) => self.with_headroom(),
            // The queue of other flows keeps the bytes in flight above the threshold that ends this phase.
            State::ProbeBw(ProbeBwPhase::Down) if self.cross_traffic.is_present() => {
                self.with_headroom()
            }
            State::ProbeBw(_) => self.bounds.in_flight,
            State::ProbeRtt => self.with_headroom().min(self.probe_rtt_window()),
        };
        long_term.min(self.bounds.short_in_flight)
    }
}
