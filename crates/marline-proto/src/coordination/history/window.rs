//! Initial windows from the average of earlier connections.

use std::sync::Arc;

use super::learner::Learner;
use super::{HistoryConfig, HistoryPolicy, PathHistory, PathSample, PathStore, ZeroRtt};
use crate::congestion::{ConnectionKind, InitialWindow, MAXIMUM_WINDOW};
use crate::settings::Spec;

/// Learns the windows of connections, and chooses their average as the initial window of later ones if it is
/// larger than the fallback's.
///
/// If the path has become slower since, the first flight exceeds its capacity. `cap` limits that, and
/// [`CarefulHistory`](super::CarefulHistory) avoids it.
#[derive(Clone, Debug)]
pub struct HistoryWindow {
    learner: Learner,
    fallback: Arc<dyn InitialWindow>,
}

impl HistoryWindow {
    /// A history that keeps its records in `store`; `fallback` chooses the default window.
    pub fn new(
        config: HistoryConfig,
        store: Arc<dyn PathStore>,
        fallback: Arc<dyn InitialWindow>,
    ) -> Self {
        Self {
            learner: Learner::new(config, store),
            fallback,
        }
    }

    /// The configuration of learning.
    pub fn config(&self) -> &HistoryConfig {
        &self.learner.config
    }

    /// The average window of earlier connections like this one, in bytes.
    pub fn average(&self, kind: &ConnectionKind<'_>) -> Option<f64> {
        self.learner.average(kind)
    }

    /// The initial window in bytes, including the fraction of a byte that [`InitialWindow::window`] drops.
    pub fn initial_window(&self, kind: &ConnectionKind<'_>) -> f64 {
        let config = self.config();
        let default = self.fallback.window(kind) as f64;
        let cap = config.cap.map_or(f64::INFINITY, |cap| cap as f64);
        let learnt = || {
            self.average(kind)
                .map_or(default, |average| average.min(cap).max(default))
        };
        match config.zero_rtt {
            ZeroRtt::Default if kind.resumed => default,
            ZeroRtt::Carry if kind.resumed => self
                .learner
                .live(kind)
                .map_or_else(learnt, |live| live as f64),
            _ => learnt(),
        }
    }
}

impl InitialWindow for HistoryWindow {
    fn spec(&self) -> Spec {
        Spec::named(HistoryPolicy::Average.name())
    }

    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        (self.initial_window(kind) as u64).min(MAXIMUM_WINDOW)
    }

    fn window_before_handshake(&self, kind: &ConnectionKind<'_>) -> u64 {
        self.fallback.window_before_handshake(kind)
    }
}

impl PathHistory for HistoryWindow {
    fn observe(&self, kind: &ConnectionKind<'_>, seen: &PathSample) {
        self.learner.observe(kind, seen);
    }

    fn store(&self) -> Option<&dyn PathStore> {
        Some(self.learner.store())
    }
}

#[cfg(test)]
mod tests;
