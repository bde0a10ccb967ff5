//! Slow start that only a loss ends.

use super::{Decision, SlowStartExit, SlowStartSample};

/// Never ends slow start.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExit;

impl SlowStartExit for NoExit {
    fn on_round_start(&mut self) {}

    fn on_ack(&mut self, _sample: &SlowStartSample) -> Decision {
        Decision::Stay
    }

    fn reset(&mut self) {}

    fn name(&self) -> &'static str {
        "none"
    }
}
