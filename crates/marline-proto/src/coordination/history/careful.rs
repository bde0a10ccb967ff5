//! No learnt window, but a capacity to return to.

use std::sync::Arc;

use super::learner::Learner;
use super::{Capacity, HistoryConfig, PathSample, PathStore, StoreStatistics};
use crate::congestion::{ConnectionKind, InitialWindow};

/// Begins with the fallback's window, and remembers for careful resume what paths were seen to carry
/// (RFC 9959).
///
/// It learns as a [`HistoryWindow`](super::HistoryWindow) does, so that both may share a store; of what is
/// chosen, `scope`, `per_server_name` and `lifetime` matter here. Where `scope` holds many hosts, one of
/// them returns to what another has found.
#[derive(Clone, Debug)]
pub struct CarefulWindow {
    learner: Learner,
    fallback: Arc<dyn InitialWindow>,
}

impl CarefulWindow {
    /// Learns into `store`; `fallback` is the window of every connection.
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

    /// How it learns.
    pub fn config(&self) -> &HistoryConfig {
        &self.learner.config
    }
}

impl InitialWindow for CarefulWindow {
    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        self.fallback.window(kind)
    }

    fn window_before_handshake(&self, kind: &ConnectionKind<'_>) -> u64 {
        self.fallback.window_before_handshake(kind)
    }

    fn observe(&self, kind: &ConnectionKind<'_>, seen: &PathSample) {
        self.learner.observe(kind, seen);
    }

    fn statistics(&self) -> Option<StoreStatistics> {
        Some(self.learner.statistics())
    }

    fn resumption(&self, kind: &ConnectionKind<'_>) -> Option<Capacity> {
        self.learner.capacity(kind)
    }

    fn claim(&self, kind: &ConnectionKind<'_>) -> Option<Capacity> {
        self.learner.take_capacity(kind)
    }

    fn forget(&self, kind: &ConnectionKind<'_>) {
        self.learner.take_capacity(kind);
    }
}

#[cfg(test)]
mod tests;
