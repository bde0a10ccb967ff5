//! Synchronizing windows and slow start (section IV-B): for controllers that have a window.

use crate::observe::events::{BundleAction, BundlePhase};

/// What rounding may take from a growth before it counts as smaller.
const EPSILON: f64 = 1e-9;

/// The settings of [`LossBased`]; windows have whatever unit the caller uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossBasedConfig {
    /// Growth in the affected member's round (in equation 7: g).
    pub affected_growth: f64,
    /// Growth of the bundle below which slow start is given up (delta).
    pub avoidance_growth: f64,
    /// Largest window over smallest above which congestion avoidance makes all equal.
    pub imbalance: f64,
    /// No window is made smaller than this.
    pub floor: f64,
    /// Whether windows are made equal.
    pub sync_windows: bool,
    /// Whether slow start goes on after an event.
    pub sync_state: bool,
}

/// The recursion that decides for how long a bundle stays in slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossBased {
    config: LossBasedConfig,
    phase: BundlePhase,
    /// Growth of a round of slow start without events (gamma 0), as it was at the first event.
    initial: Option<f64>,
    gamma: f64,
    events: u64,
}

/// A fluctuation event of one member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fluctuation {
    /// The member's place.
    pub affected: usize,
    /// Connections of the bundle, those included that take no part now (N).
    pub members: usize,
    /// What it left of the member's window (beta).
    pub backoff: f64,
    /// What a round of slow start makes of a window (gamma 0).
    pub slow_start_growth: f64,
}

/// Growth of a bundle of `members` after one of them met an event, given its growth before (equation 7).
pub fn next_growth(previous: f64, members: usize, backoff: f64, affected_growth: f64) -> f64 {
    let others = members.saturating_sub(1) as f64;
    (backoff * affected_growth + others * previous) / (backoff + others)
}

impl LossBased {
    /// In slow start, without an event so far.
    pub const fn new(config: LossBasedConfig) -> Self {
        Self {
            config,
            phase: BundlePhase::SlowStart,
            initial: None,
            gamma: 1.0,
            events: 0,
        }
    }

    /// Where the bundle stands.
    pub const fn phase(&self) -> BundlePhase {
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

    /// A member met an event and has backed off: `windows` are those after that, and become what all
    /// shall have.
    pub fn on_fluctuation(&mut self, event: &Fluctuation, windows: &mut [f64]) -> BundleAction {
        let LossBasedConfig {
            sync_windows,
            sync_state,
            ..
        } = self.config;
        let idle = windows.is_empty() || !sync_windows && !sync_state;
        if self.phase == BundlePhase::CongestionAvoidance || idle {
            return BundleAction::None;
        }
        if !sync_state {
            // Without its state, a member that backed off grows no faster for it.
            self.events += 1;
            self.level(windows, 1.0);
            return BundleAction::Synchronized;
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
            self.phase = BundlePhase::CongestionAvoidance;
            return BundleAction::Exited;
        }
        if sync_windows {
            // Slow start goes on for all: a round later, they have what they would have had without it.
            self.level(windows, self.gamma / initial);
        }
        BundleAction::Synchronized
    }

    /// A round is over: in congestion avoidance, windows that have drifted apart become equal.
    pub fn on_round(&mut self, windows: &mut [f64]) -> BundleAction {
        if self.phase == BundlePhase::SlowStart || !self.config.sync_windows {
            return BundleAction::None;
        }
        let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
        let most = windows.iter().copied().fold(0.0, f64::max);
        if most <= self.config.imbalance * least {
            return BundleAction::None;
        }
        self.level(windows, 1.0);
        BundleAction::Equalized
    }

    /// Changes what no window is made smaller than.
    pub fn set_floor(&mut self, floor: f64) {
        self.config.floor = floor;
    }

    /// Gives slow start up for good.
    pub fn exit(&mut self) {
        self.phase = BundlePhase::CongestionAvoidance;
    }

    fn level(&self, windows: &mut [f64], scale: f64) {
        let sum: f64 = windows.iter().sum();
        let each = sum * scale / windows.len().max(1) as f64;
        windows.fill(each.max(self.config.floor));
    }
}
