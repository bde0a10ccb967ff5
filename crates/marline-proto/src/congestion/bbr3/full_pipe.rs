//! Detection of a full pipe (section 5.3.1.2).

/// Growth of the delivery rate below which a round shows a plateau.
const GROWTH: f64 = 1.25;

/// Rounds in a row that show a plateau.
const ROUNDS: u32 = 3;

/// Looks for a plateau of the delivery rate while the sending rate rises.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The rate that growth is measured from, in bytes per second (`BBR.full_bw`).
    baseline: u64,
    /// Rounds since without sufficient growth.
    rounds: u32,
    /// Whether a plateau was found since the search began (`BBR.full_bw_now`).
    is_now: bool,
    /// Whether one was ever found, or losses ended startup (`BBR.full_bw_reached`).
    is_reached: bool,
}

impl FullPipe {
    pub(super) fn is_now(&self) -> bool {
        self.is_now
    }

    pub(super) fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// Whether the latest round still grew.
    pub(super) fn is_growing(&self) -> bool {
        self.rounds == 0
    }

    pub(super) fn set_reached(&mut self, is_reached: bool) {
        self.is_reached = is_reached;
    }

    /// Begins a search for more than `baseline` bytes per second.
    pub(super) fn restart(&mut self, baseline: u64) {
        *self = Self {
            baseline,
            is_reached: self.is_reached,
            ..Self::default()
        };
    }

    /// Measures growth from `baseline`; earlier rounds without growth still count.
    pub(super) fn rebase(&mut self, baseline: u64) {
        self.baseline = baseline;
    }

    /// A round ended with a sample that is not app-limited.
    pub(super) fn on_round(&mut self, bandwidth: u64) {
        if self.is_now {
            return;
        }
        if bandwidth as f64 >= self.baseline as f64 * GROWTH {
            self.restart(bandwidth);
            return;
        }
        self.rounds += 1;
        self.is_now = self.rounds >= ROUNDS;
        self.is_reached |= self.is_now;
    }
}
