//! Slow start that ends only on loss.

use std::sync::Arc;

use super::{SlowStartDecision, SlowStartExit, SlowStartSample};
use crate::settings::{Entry, Make};

/// Its name in settings.
pub(super) const ENTRY: Entry<Make<dyn SlowStartExit>, ()> =
    Entry::plain("none", "Only a loss ends slow start", |()| {
        Arc::new(|| Box::new(NoExit))
    });

/// Never ends slow start.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExit;

impl SlowStartExit for NoExit {
    fn on_round_start(&mut self) {}

    fn on_ack(&mut self, _sample: &SlowStartSample) -> SlowStartDecision {
        SlowStartDecision::Stay
    }

    fn reset(&mut self) {}

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
