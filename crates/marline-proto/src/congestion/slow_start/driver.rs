//! Feeds a [`SlowStartExit`] its rounds.

use super::{SlowStartDecision, SlowStartExit, SlowStartSample};
use crate::Instant;
use crate::samples::AckSample;

/// Counts rounds and turns decisions into growth.
#[derive(Debug)]
pub(in crate::congestion) struct SlowStart {
    exit: Box<dyn SlowStartExit>,
    /// Growth of the window for each acknowledged byte, from 0 to 1.
    gain: f64,
    /// Growth too small for a byte.
    fraction: f64,
    /// Packets sent from then on end the round.
    round_start: Option<Instant>,
}

impl SlowStart {
    /// The window grows by the factor `growth` in a round trip, at most 2.
    pub(in crate::congestion) fn new(exit: Box<dyn SlowStartExit>, growth: f64) -> Self {
        Self {
            exit,
            gain: (growth - 1.0).clamp(0.0, 1.0),
            fraction: 0.0,
            round_start: None,
        }
    }

    /// Growth in bytes of a window of `window` bytes; `None` ends slow start.
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
            rate: ack
                .rate
                .filter(|rate| !rate.app_limited)
                .map(|rate| rate.bytes_per_second()),
        });
        match decision {
            SlowStartDecision::Stay => Some(self.growth(ack.bytes)),
            SlowStartDecision::Slow(divisor) => Some(self.growth(ack.bytes / divisor.max(1))),
            SlowStartDecision::Exit => None,
        }
    }

    fn growth(&mut self, acked: u64) -> u64 {
        let growth = acked as f64 * self.gain + self.fraction;
        self.fraction = growth.fract();
        growth as u64
    }

    pub(in crate::congestion) fn reset(&mut self) {
        self.round_start = None;
        self.exit.reset();
    }
}
