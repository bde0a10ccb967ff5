//! The delay of the path without a queue.

use std::time::Duration;

use crate::Instant;
use crate::samples::AckSample;

/// Lifetime of a measurement.
const LIFETIME: Duration = Duration::from_secs(10);

/// The smallest round-trip time of the last ten seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    measured: Option<(Duration, Instant)>,
}

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.measured.map(|(rtt, _)| rtt)
    }

    /// Processes the sample of an ACK; returns whether the previous measurement had expired.
    pub(super) fn update(&mut self, now: Instant, ack: &AckSample) -> bool {
        let expired = self.measured.is_some_and(|(_, at)| now > at + LIFETIME);
        let replaces = self
            .measured
            .is_none_or(|(rtt, _)| ack.rtt.latest <= rtt || expired);
        if ack.rtt_updated && replaces {
            self.measured = Some((ack.rtt.latest, now));
        }
        expired
    }

    /// The path has just been drained: renews the measurement.
    pub(super) fn confirm(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.measured {
            *at = now;
        }
    }
}
