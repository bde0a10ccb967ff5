//! BBR version 1 (Cardwell et al., 2016; draft-cardwell-iccrg-bbr-congestion-control-00).
//!
//! The model consists of the bandwidth of the bottleneck and the delay of the path without a queue; window and
//! rate follow from them and from the gains of the mode.

mod min_rtt;
mod recovery;

use std::sync::Arc;
use std::time::Duration;

use self::min_rtt::MinRtt;
use self::recovery::BbrRecovery;
use super::max_filter::MaxFilter;
use super::rounds::Rounds;
use super::{
    Algorithm, Controller, ControllerConfig, ControllerFactory, Coordinated, MAXIMUM_WINDOW,
    PathModel, Phase,
};
use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, RateSample, RttView, SentSample};
use crate::settings::Entry;

/// Its name in settings.
pub(super) const ENTRY: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain(
    "bbr",
    "BBR version 1: the bandwidth and the delay of the path, measured",
    |()| Arc::new(Algorithm::Bbr),
);

/// Doubles the delivery rate every round: 2 / ln 2.
const HIGH_GAIN: f64 = 2.885;

/// Window in steady state, in bandwidth-delay products: room for delayed acknowledgments.
const WINDOW_GAIN: f64 = 2.0;

/// Pacing gains of the phases of `ProbeBw`, each about one round trip long.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Rounds over which the maximum bandwidth is taken.
const BANDWIDTH_ROUNDS: u64 = 10;

/// Rounds in which the bandwidth grows by less than a quarter until the pipe is considered full.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;

/// Window while the delay is measured, and the smallest one that BBR works with, in datagrams.
const PROBE_RTT_PACKETS: u64 = 4;
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// Largest burst, in bytes: one segmentation offload.
const MAX_QUANTUM: u64 = 64 * 1024;

#[derive(Clone, Copy, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw {
        phase: usize,
        since: Instant,
    },
    ProbeRtt {
        /// When the measurement ends; `None` until the path is drained.
        until: Option<Instant>,
        round_passed: bool,
        /// The window before the measurement.
        window: u64,
    },
}

/// Paces at the bandwidth of the bottleneck; losses do not reduce the rate.
#[derive(Debug)]
pub struct Bbr {
    mode: Mode,
    window: u64,
    initial_window: u64,
    max_datagram_size: u64,
    /// Bytes per second.
    bandwidth: MaxFilter,
    rounds: Rounds,
    /// Bytes delivered so far, and bytes in flight.
    delivered: u64,
    in_flight: u64,
    /// Packets sent before this many bytes were delivered measure the rate before a coordinator lowered it.
    overruled: u64,
    min_rtt: MinRtt,
    recovery: BbrRecovery,
    /// Bandwidth at the latest growth by a quarter in startup, and rounds since.
    full_bandwidth: u64,
    full_rounds: u32,
    pipe_is_full: bool,
    /// Whether sending resumes after a pause: the delay of the empty path need not be probed.
    was_idle: bool,
    lost_in_round: bool,
    app_limited: bool,
    first_phase: usize,
}

impl Bbr {
    /// A controller for a new path.
    pub fn new(config: &ControllerConfig) -> Self {
        let mut bbr = Self {
            mode: Mode::Startup,
            window: 0,
            initial_window: config.initial_window,
            max_datagram_size: config.max_datagram_size,
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            rounds: Rounds::default(),
            delivered: 0,
            in_flight: 0,
            overruled: 0,
            min_rtt: MinRtt::default(),
            recovery: BbrRecovery::default(),
            full_bandwidth: 0,
            full_rounds: 0,
            pipe_is_full: false,
            was_idle: false,
            lost_in_round: false,
            app_limited: false,
            first_phase: first_phase(config.seed),
        };
        bbr.put(config.initial_window);
        bbr
    }

    /// Bytes of one burst: the delivery of one millisecond.
    fn send_quantum(&self) -> u64 {
        let per_millisecond = self.bandwidth.get() / 1000;
        per_millisecond
            .min(MAX_QUANTUM)
            .max(2 * self.max_datagram_size)
    }

    fn minimum_window(&self) -> u64 {
        PROBE_RTT_PACKETS.saturating_mul(self.max_datagram_size)
    }

    fn put(&mut self, bytes: u64) {
        self.window = bytes.min(MAXIMUM_WINDOW).max(self.minimum_window());
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeBw { phase, .. } => CYCLE[phase % CYCLE.len()],
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => WINDOW_GAIN,
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    /// The bandwidth-delay product in bytes, once both are known.
    fn product(&self) -> Option<f64> {
        let bandwidth = Some(self.bandwidth.get()).filter(|bandwidth| *bandwidth > 0)?;
        Some(bandwidth as f64 * self.min_rtt.get()?.as_secs_f64())
    }

    /// `gain` bandwidth-delay products, in bytes; the initial window before there is a model.
    fn target(&self, gain: f64) -> u64 {
        let product = self.product().unwrap_or(self.initial_window as f64);
        (product * gain) as u64
    }

    /// The window to grow to: `gain` products, and room for bursts at both ends.
    fn bound(&self, gain: f64) -> u64 {
        self.target(gain).saturating_add(3 * self.send_quantum())
    }

    /// Processes a sample; returns whether it begins a round.
    fn on_rate(&mut self, rate: &RateSample) -> bool {
        self.delivered = self.delivered.max(rate.delivered_total);
        let round_begins = self.rounds.update(rate);
        if rate.prior_delivered < self.overruled {
            return round_begins;
        }
        let sample = rate.bytes_per_second();
        // An application-limited sample is a lower bound.
        if !rate.app_limited || sample >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds.count(), sample);
        }
        if round_begins {
            self.check_pipe(rate.app_limited);
        }
        round_begins
    }

    /// Checks once per round of startup whether the bandwidth has stopped growing.
    fn check_pipe(&mut self, app_limited: bool) {
        if self.pipe_is_full || app_limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth as f64 >= self.full_bandwidth as f64 * FULL_GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.pipe_is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw {
            phase: self.first_phase,
            since: now,
        };
    }

    fn advance(&mut self, now: Instant, ack: &AckSample) {
        match self.mode {
            Mode::Startup if self.pipe_is_full => {
                self.mode = Mode::Drain;
                self.leave_drain(now, ack.bytes_in_flight);
            }
            Mode::Startup | Mode::ProbeRtt { .. } => {}
            Mode::Drain => self.leave_drain(now, ack.bytes_in_flight),
            Mode::ProbeBw { phase, since } => {
                if self.phase_is_over(now, since, ack.prior_in_flight) {
                    self.mode = Mode::ProbeBw {
                        phase: (phase + 1) % CYCLE.len(),
                        since: now,
                    };
                    self.lost_in_round = false;
                }
            }
        }
    }

    fn leave_drain(&mut self, now: Instant, in_flight: u64) {
        if in_flight <= self.target(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// A phase lasts one round trip; probing up continues until the pipe is that full or a packet is lost, and
    /// draining ends once the queue is empty.
    fn phase_is_over(&self, now: Instant, since: Instant, in_flight: u64) -> bool {
        let gain = self.pacing_gain();
        let has_lasted = now - since > self.min_rtt.get().unwrap_or_default();
        if gain > 1.0 {
            has_lasted && (self.lost_in_round || in_flight >= self.target(gain))
        } else if gain < 1.0 {
            has_lasted || in_flight <= self.target(1.0)
        } else {
            has_lasted
        }
    }

    fn probe_rtt(&mut self, now: Instant, ack: &AckSample, expired: bool, round_begins: bool) {
        if expired && !self.was_idle && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.mode = Mode::ProbeRtt {
                until: None,
                round_passed: false,
                window: self.window,
            };
        }
        let minimum = self.minimum_window();
        let Mode::ProbeRtt {
            until,
            round_passed,
            window,
        } = &mut self.mode
        else {
            return;
        };
        let Some(end) = *until else {
            if ack.bytes_in_flight <= minimum {
                *until = Some(now + PROBE_RTT_DURATION);
                if let Some(rate) = &ack.rate {
                    self.rounds.restart(rate.delivered_total);
                }
            }
            return;
        };
        *round_passed |= round_begins;
        if *round_passed && now >= end {
            let window = *window;
            self.min_rtt.confirm(now);
            self.put(self.window.max(window));
            if self.pipe_is_full {
                self.enter_probe_bw(now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn grow(&mut self, ack: &AckSample) {
        if ack.app_limited {
            return;
        }
        let bound = self.bound(self.window_gain());
        let grown = self.window.saturating_add(ack.bytes);
        if self.pipe_is_full {
            self.put(grown.min(bound));
        } else if self.window < bound {
            self.put(grown);
        }
    }
}

/// The first phase of `ProbeBw`: any but the draining one, so that flows which share a bottleneck do not probe
/// together.
fn first_phase(seed: u64) -> usize {
    match seed % (CYCLE.len() as u64 - 1) {
        0 => 0,
        phase => phase as usize + 1,
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, _now: Instant, sent: &SentSample) {
        self.in_flight = sent.bytes_in_flight;
    }

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        self.app_limited = ack.app_limited;
        self.in_flight = ack.bytes_in_flight;
        let round_begins = ack.rate.as_ref().is_some_and(|rate| self.on_rate(rate));
        self.recovery.on_ack(
            ack.largest_acked_sent_at,
            ack.bytes,
            ack.bytes_in_flight,
            round_begins,
        );
        self.advance(now, ack);
        let expired = self.min_rtt.update(now, ack);
        self.probe_rtt(now, ack, expired, round_begins);
        self.was_idle = false;
        self.grow(ack);
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.lost_in_round = true;
        self.in_flight = loss.bytes_in_flight;
        self.recovery
            .on_loss(now, loss.latest_sent_at, loss.bytes_in_flight);
        if loss.persistent {
            self.put(0);
            self.recovery.end();
        }
    }

    fn on_ce(&mut self, _now: Instant, _ce: &CeSample) {}

    fn on_spurious_loss(&mut self, _now: Instant, _sent_at: Instant) {
        self.recovery.end();
    }

    fn on_idle(&mut self, _now: Instant, _idle: Duration) {
        self.was_idle = true;
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.max_datagram_size = mtu.max(1);
        self.put(self.window);
    }

    fn window(&self) -> u64 {
        let minimum = self.minimum_window();
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            return minimum;
        }
        self.recovery
            .window()
            .map_or(self.window, |bound| self.window.min(bound.max(minimum)))
    }

    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        let bandwidth = match self.bandwidth.get() {
            0 => self.initial_window as f64 / rtt.smoothed.as_secs_f64().max(1e-6),
            bandwidth => bandwidth as f64,
        };
        (bandwidth * self.pacing_gain()).max(1.0) as u64
    }

    fn phase(&self) -> Phase {
        if self.recovery.is_active() {
            return Phase::Recovery;
        }
        match self.mode {
            Mode::ProbeRtt { .. } => Phase::ProbeRtt,
            _ if self.app_limited => Phase::ApplicationLimited,
            Mode::Startup => Phase::Startup,
            Mode::Drain => Phase::Drain,
            Mode::ProbeBw { .. } => Phase::ProbeBw,
        }
    }

    fn in_slow_start(&self) -> bool {
        !self.pipe_is_full
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn is_rate_based(&self) -> bool {
        true
    }

    fn bandwidth(&self) -> Option<u64> {
        Some(self.bandwidth.get()).filter(|bandwidth| *bandwidth > 0)
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}

impl Coordinated for Bbr {
    fn set_window(&mut self, bytes: u64) {
        self.put(bytes);
        self.recovery.end();
        if self.product().is_none() {
            self.initial_window = self.window;
        }
        if let Mode::ProbeRtt { window, .. } = &mut self.mode {
            *window = self.window;
        }
    }

    fn enter_slow_start(&mut self) {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
        self.pipe_is_full = false;
        if !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.mode = Mode::Startup;
        }
    }

    fn exit_slow_start(&mut self) {
        self.pipe_is_full = true;
        if matches!(self.mode, Mode::Startup) {
            self.mode = Mode::Drain;
        }
    }

    fn set_bandwidth(&mut self, bytes_per_second: u64) {
        let bandwidth = bytes_per_second.max(1);
        if bandwidth < self.bandwidth.get() {
            // Packets in flight still arrive at the old rate.
            self.overruled = self.delivered.saturating_add(self.in_flight);
        }
        self.bandwidth.reset(self.rounds.count(), bandwidth);
        // Startup measures its progress from here. Earlier rounds without progress still count: otherwise startup
        // would never end if the bandwidth is set repeatedly.
        self.full_bandwidth = bandwidth;
        let bound = self.bound(match self.mode {
            Mode::ProbeRtt { .. } if self.pipe_is_full => WINDOW_GAIN,
            Mode::ProbeRtt { .. } => HIGH_GAIN,
            _ => self.window_gain(),
        });
        self.put(self.window.min(bound));
        if let Mode::ProbeRtt { window, .. } = &mut self.mode {
            *window = (*window).min(bound);
        }
    }

    fn model(&self) -> Option<PathModel> {
        let model = PathModel {
            bandwidth: self.bandwidth.get(),
            is_limit: self.pipe_is_full,
            min_rtt: self.min_rtt.get()?,
            random_loss: 0.0,
        };
        model.is_sound().then_some(model)
    }
}

#[cfg(test)]
mod tests;
