//! The limits of qlog files.

use std::sync::Arc;

use super::ServerLimits;
use crate::transport::{QlogBudget, QlogLimits};

/// The limits of the qlog files of all connections, which outlast a replaced configuration.
pub(super) struct Logs {
    pub(super) budget: Arc<QlogBudget>,
    /// Files that may be open at once.
    descriptors: usize,
}

impl Logs {
    pub(super) fn new(descriptors: usize, limits: &ServerLimits) -> Self {
        Self {
            budget: QlogBudget::new(Self::within(descriptors, limits)),
            descriptors,
        }
    }

    /// Replaces the limits.
    pub(super) fn set_limits(&self, limits: &ServerLimits) {
        self.budget
            .set_limits(Self::within(self.descriptors, limits));
    }

    fn within(descriptors: usize, limits: &ServerLimits) -> QlogLimits {
        QlogLimits {
            open_files: limits.qlog.open_files.min(descriptors),
            ..limits.qlog
        }
    }
}
