//! Synchronizing windows and slow start (section IV-B), for controllers that work with a window.

use super::decision::{DecisionAction, EnginePhase};

/// Rounding error of a growth, below which it does not count as smaller.
const EPSILON: f64 = 1e-9;

/// The settings of [`LossBasedEngine`]; the unit of windows is up to the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossBasedConfig {
    /// Growth in the affected member's round (in equation 7: g).
    pub affected_growth: f64,
    /// Growth of the bundle below which slow start ends (delta).
    pub avoidance_growth: f64,
    /// Ratio of the largest window to the smallest above which all are made equal in congestion avoidance.
    pub imbalance: f64,
    /// No window is made smaller than this.
    pub floor: f64,
    /// Whether windows are made equal.
    pub sync_windows: bool,
    /// Whether slow start continues after an event.
    pub sync_state: bool,
}

/// The recursion that decides how long a bundle stays in slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossBasedEngine {
    config: LossBasedConfig,
    phase: EnginePhase,
    /// Growth of a round of slow start without events (gamma 0), as it was at the first event.
    initial: Option<f64>,
    gamma: f64,
    events: u64,
}

/// A fluctuation event of one member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fluctuation {
    /// Index of the member.
    pub affected: usize,
    /// Members of the bundle, including those that take no part in this decision (N).
    pub members: usize,
    /// The part of the member's window that it left (beta).
    pub backoff: f64,
    /// Growth of a window in a round of slow start (gamma 0).
    pub slow_start_growth: f64,
}

/// Growth of a bundle of `members` after one of them met an event, given its growth before (equation 7).
pub fn next_growth(previous: f64, members: usize, backoff: f64, affected_growth: f64) -> f64 {
    let others = members.saturating_sub(1) as f64;
    (backoff * affected_growth + others * previous) / (backoff + others)
}

impl LossBasedEngine {
    /// In slow start, before the first event.
    pub const fn new(config: LossBasedConfig) -> Self {
        Self {
            config,
            phase: EnginePhase::SlowStart,
            initial: None,
            gamma: 1.0,
            events: 0,
        }
    }

    /// The phase of the bundle.
    pub const fn phase(&self) -> EnginePhase {
        self.phase
    }

    /// Growth after the latest event (gamma i); `None` before the first.
    pub fn gamma(&self) -> Option<f64> {
        self.initial.map(|_| self.gamma)
    }

    /// Events that counted (i).
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// A member has reacted to an event. `windows` are those after its reaction; they are changed to what
    /// the members shall have.
    pub fn on_fluctuation(&mut self, event: &Fluctuation, windows: &mut [f64]) -> DecisionAction {
        let LossBasedConfig {
            sync_windows,
            sync_state,
            ..
        } = self.config;
        let idle = windows.is_empty() || !sync_windows && !sync_state;
        if self.phase == EnginePhase::CongestionAvoidance || idle {
            return DecisionAction::None;
        }
        if !sync_state {
            // Members leave slow start on their own, so that the windows do not have to catch up.
            self.events += 1;
            self.equalize(windows, 1.0);
            return DecisionAction::Synchronized;
        }
        let initial = *self.initial.get_or_insert(event.slow_start_growth);
        let previous = if self.events == 0 {
            initial
        } else {
            self.gamma
        };
        let growth = self.config.affected_growth;
        self.gamma = next_growth(previous, event.members, event.backoff, growth);
        self.events += 1;
        if self.gamma < self.config.avoidance_growth - EPSILON {
            self.phase = EnginePhase::CongestionAvoidance;
            return DecisionAction::Exited;
        }
        if sync_windows {
            // Slow start continues for all: a round later, the windows are as if only gamma had changed.
            self.equalize(windows, self.gamma / initial);
        }
        DecisionAction::Synchronized
    }

    /// A round has ended: in congestion avoidance, windows that have drifted apart are made equal.
    pub fn on_round(&mut self, windows: &mut [f64]) -> DecisionAction {
        if self.phase == EnginePhase::SlowStart || !self.config.sync_windows {
            return DecisionAction::None;
        }
        let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
        let most = windows.iter().copied().fold(0.0, f64::max);
        if most <= self.config.imbalance * least {
            return DecisionAction::None;
        }
        self.equalize(windows, 1.0);
        DecisionAction::Equalized
    }

    /// Sets the smallest window.
    pub fn set_floor(&mut self, floor: f64) {
        self.config.floor = floor;
    }

    /// Ends slow start permanently.
    pub fn exit(&mut self) {
        self.phase = EnginePhase::CongestionAvoidance;
    }

    /// Gives each an equal part of the sum times `scale`.
    fn equalize(&self, windows: &mut [f64], scale: f64) {
        let sum: f64 = windows.iter().sum();
        let each = sum * scale / windows.len().max(1) as f64;
        windows.fill(each.max(self.config.floor));
    }
}
