//! Slow start that only a loss ends.

use super::{SlowStartDecision, SlowStartExit, SlowStartSample};

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
        "none"
    }
}
