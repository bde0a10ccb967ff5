//! The delay of the empty path.

use std::time::Duration;

use crate::Instant;
use crate::samples::AckSample;

/// How long a measurement is trusted.
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

    /// Takes the sample of an ACK; says whether the measurement before it was too old.
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

    /// The path was just empty: trust the measurement anew.
    pub(super) fn confirm(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.measured {
            *at = now;
        }
    }
}
