//! Round-trip times (RFC 9002, section 5).

use std::time::Duration;

use super::pto;
use crate::samples::RttView;

/// The initial round-trip time recommended by RFC 9002, section 6.2.2.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Estimates the round-trip time of one path.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    view: RttView,
    /// Probe timeout according to `view`, cached because it is read for every packet and changes only with a sample.
    pto: Duration,
    sampled: bool,
}

impl RttEstimator {
    /// An estimator that assumes `initial` until the first sample.
    pub fn new(initial: Duration) -> Self {
        let view = RttView {
            latest: initial,
            adjusted: initial,
            smoothed: initial,
            min: initial,
            variance: initial / 2,
        };
        Self {
            view,
            pto: pto::period(&view),
            sampled: false,
        }
    }

    /// Takes a sample: `latest` is the time since the largest newly acknowledged packet was sent,
    /// `ack_delay` the delay reported by the peer (zero for Initial packets).
    ///
    /// `max_ack_delay` is that of the peer, which bounds `ack_delay` once the handshake is
    /// confirmed (RFC 9002, section 5.3).
    pub fn update(
        &mut self,
        latest: Duration,
        ack_delay: Duration,
        handshake_confirmed: bool,
        max_ack_delay: Duration,
    ) {
        self.sample(latest, ack_delay, handshake_confirmed, max_ack_delay);
        self.pto = pto::period(&self.view);
    }

    fn sample(
        &mut self,
        latest: Duration,
        ack_delay: Duration,
        handshake_confirmed: bool,
        max_ack_delay: Duration,
    ) {
        let view = &mut self.view;
        view.latest = latest;
        view.adjusted = latest;
        if !self.sampled {
            self.sampled = true;
            view.min = latest;
            view.smoothed = latest;
            view.variance = latest / 2;
            return;
        }
        view.min = view.min.min(latest);
        let delay = if handshake_confirmed {
            ack_delay.min(max_ack_delay)
        } else {
            ack_delay
        };
        if let Some(adjusted) = latest.checked_sub(delay)
            && adjusted >= view.min
        {
            view.adjusted = adjusted;
        }
        let deviation = view.smoothed.abs_diff(view.adjusted);
        view.variance = (view.variance * 3 + deviation) / 4;
        view.smoothed = (view.smoothed * 7 + view.adjusted) / 8;
    }

    /// Resets the minimum after persistent congestion (RFC 9002, section 5.2).
    pub fn reset_min(&mut self) {
        self.view.min = self.view.latest;
    }

    /// Whether there was a sample.
    pub const fn has_sample(&self) -> bool {
        self.sampled
    }

    /// The newest sample.
    pub const fn latest(&self) -> Duration {
        self.view.latest
    }

    /// The smallest sample.
    pub const fn min(&self) -> Duration {
        self.view.min
    }

    /// The smoothed round-trip time.
    pub const fn smoothed(&self) -> Duration {
        self.view.smoothed
    }

    /// The mean deviation (rttvar).
    pub const fn variance(&self) -> Duration {
        self.view.variance
    }

    /// The probe timeout without the peer's acknowledgment delay and without backoff.
    pub const fn pto(&self) -> Duration {
        self.pto
    }

    /// All values, for policies.
    pub const fn view(&self) -> RttView {
        self.view
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

#[cfg(test)]
mod tests;
