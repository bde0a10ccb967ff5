//! Saved capacities, for careful resume.

use std::sync::Arc;

use super::learner::Learner;
use super::{Capacity, HistoryConfig, PathHistory, PathSample, PathStore};
use crate::congestion::ConnectionKind;

/// Saves the observed capacities of paths, and offers them to careful resume (RFC 9959).
///
/// Initial windows do not depend on it. It learns as a [`HistoryWindow`](super::HistoryWindow) does, so
/// that both may use one store; of the configuration, only `scope`, `per_server_name` and `lifetime`
/// apply. If `scope` covers several hosts, one of them resumes the capacity that another has observed.
#[derive(Clone, Debug)]
pub struct CarefulHistory {
    learner: Learner,
}

impl CarefulHistory {
    /// A history that keeps its records in `store`.
    pub fn new(config: HistoryConfig, store: Arc<dyn PathStore>) -> Self {
        Self {
            learner: Learner::new(config, store),
        }
    }

    /// The configuration of learning.
    pub fn config(&self) -> &HistoryConfig {
        &self.learner.config
    }
}

impl PathHistory for CarefulHistory {
    fn observe(&self, kind: &ConnectionKind<'_>, seen: &PathSample) {
        self.learner.observe(kind, seen);
    }

    fn saved(&self, kind: &ConnectionKind<'_>) -> Option<Capacity> {
        self.learner.capacity(kind)
    }

    fn claim(&self, kind: &ConnectionKind<'_>) -> Option<Capacity> {
        self.learner.take_capacity(kind)
    }

    fn forget(&self, kind: &ConnectionKind<'_>) {
        self.learner.take_capacity(kind);
    }

    fn store(&self) -> Option<&dyn PathStore> {
        Some(self.learner.store())
    }
}

#[cfg(test)]
mod tests;
