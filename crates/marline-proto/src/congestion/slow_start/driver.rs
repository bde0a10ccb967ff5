//! Feeds a [`SlowStartExit`] its rounds.

use super::{SlowStartDecision, SlowStartExit, SlowStartSample};
use crate::Instant;
use crate::samples::AckSample;

/// Counts rounds and turns decisions into growth.
#[derive(Debug)]
pub(in crate::congestion) struct SlowStart {
    exit: Box<dyn SlowStartExit>,
    /// A packet sent from then on ends the round.
    round_start: Option<Instant>,
}

impl SlowStart {
    pub(in crate::congestion) fn new(exit: Box<dyn SlowStartExit>) -> Self {
        Self {
            exit,
            round_start: None,
        }
    }

    /// Bytes to grow a window of `window` bytes by; `None` ends slow start.
    pub(in crate::congestion) fn on_ack(
        &mut self,
        now: Instant,
        ack: &AckSample,
        window: u64,
        max_datagram_size: u64,
    ) -> Option<u64> {
        if self
            .round_start
            .is_none_or(|start| ack.largest_acked_sent_at >= start)
        {
            self.round_start = Some(now);
            self.exit.on_round_start();
        }
        let decision = self.exit.on_ack(&SlowStartSample {
            rtt: ack.rtt_updated.then_some(ack.rtt.latest),
            min_rtt: ack.rtt.min,
            window,
            max_datagram_size,
        });
        match decision {
            SlowStartDecision::Stay => Some(ack.bytes),
            SlowStartDecision::Slow(divisor) => Some(ack.bytes / divisor.max(1)),
            SlowStartDecision::Exit => None,
        }
    }

    pub(in crate::congestion) fn reset(&mut self) {
        self.round_start = None;
        self.exit.reset();
    }
}
