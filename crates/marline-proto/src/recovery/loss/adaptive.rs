//! Loss detection with thresholds that adapt to the reordering of the path.

use std::sync::Arc;
use std::time::Duration;

use super::{LossDetector, Spurious, Thresholds};
use crate::samples::{RttView, scaled};
use crate::settings::{Domain, Entry, Make, Settings, Spec, field};

/// The detector's name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn LossDetector>, AdaptiveLimits> = Entry {
    name: "adaptive",
    about: "Initially like rfc9002, unless configured otherwise; every spurious loss raises the thresholds",
    parameters: AdaptiveLimits::SETTINGS,
    default: AdaptiveLimits::default,
    make: |limits| Arc::new(move || Box::new(Adaptive::new(limits))),
};

/// Number of loss events without a spurious one, after which the thresholds shrink (as the
/// reordering window of RFC 8985, section 6.2, step 4 persists).
const PERSISTENCE: u32 = 16;

/// Margin of learned thresholds over the observed delay, so that the same delay is not declared a loss again.
const MARGIN: f64 = 1.0 / 16.0;

/// Initial values and limits of [`Adaptive`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveLimits {
    /// Initial packet threshold, at least 3; `None` to use the time threshold only.
    pub from_packets: Option<u64>,
    /// Initial additional waiting time as a fraction of the round-trip time.
    pub from_patience: f64,
    /// Maximum packet threshold.
    pub packets: u64,
    /// Maximum additional waiting time as a fraction of the round-trip time.
    pub patience: f64,
    /// Maximum waiting time that is learned regardless of the round-trip time: packets that overtake others give
    /// samples of it that are too small for the delayed ones.
    pub wait: Duration,
}

impl AdaptiveLimits {
    /// The parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        field!(
            from_packets: Domain::integer(3, 1_000_000).or("none"),
            "Initial packet threshold; none to use the time threshold only"
        ),
        field!(from_patience: Domain::number(0.125, 10.0), "Initial additional waiting time as a fraction of the round-trip time"),
        field!(packets: Domain::integer(3, 1_000_000), "Maximum packet threshold"),
        field!(patience: Domain::number(0.125, 10.0), "Maximum additional waiting time as a fraction of the round-trip time"),
        field!(
            wait: Domain::time(Duration::ZERO, Duration::from_secs(10)),
            "Maximum waiting time that is learned regardless of the round-trip time"
        ),
    ];
}

impl Default for AdaptiveLimits {
    fn default() -> Self {
        Self {
            from_packets: Thresholds::RFC9002.packets,
            from_patience: Thresholds::RFC9002.patience,
            packets: 1000,
            patience: 1.0,
            wait: Duration::from_millis(100),
        }
    }
}

/// Starts with the thresholds of RFC 9002, or with those of its limits, and raises them after spurious losses.
///
/// Wireless links retransmit on their own, and multi-lane links reorder. A packet threshold of 3 then declares
/// reordered packets lost: the window shrinks without congestion, and data is sent twice. Every spurious loss raises
/// the exceeded threshold to a value that would have avoided it, within limits; sixteen loss events in a row without a
/// spurious one halve the learned increase, so that losses are repaired quickly once the path no longer reorders.
/// Regardless of the packet threshold, the time threshold bounds the wait to two round trips, or to 100 ms if that is
/// longer and packets were as late.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    limits: AdaptiveLimits,
    packets: Option<u64>,
    patience: f64,
    wait: Duration,
    losses: u32,
}

impl Adaptive {
    const LEAST: Thresholds = Thresholds::RFC9002;
    const MIN_PACKETS: u64 = 3;

    /// A detector with other limits; its thresholds are never below those of RFC 9002, nor below
    /// their initial values.
    pub fn new(limits: AdaptiveLimits) -> Self {
        let from_packets = limits
            .from_packets
            .map(|packets| packets.max(Self::MIN_PACKETS));
        let from_patience = limits.from_patience.max(Self::LEAST.patience);
        Self {
            limits: AdaptiveLimits {
                from_packets,
                from_patience,
                packets: limits.packets.max(from_packets.unwrap_or(0)),
                patience: limits.patience.max(from_patience),
                ..limits
            },
            packets: from_packets,
            patience: from_patience,
            wait: Duration::ZERO,
            losses: 0,
        }
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new(AdaptiveLimits::default())
    }
}

impl LossDetector for Adaptive {
    fn time_threshold(&self, rtt: &RttView) -> Duration {
        Thresholds {
            patience: self.patience,
            ..Self::LEAST
        }
        .time(rtt)
        .max(self.wait)
    }

    fn packet_threshold(&self) -> Option<u64> {
        self.packets
    }

    fn on_loss(&mut self) {
        self.losses += 1;
        if self.losses >= PERSISTENCE {
            self.losses = 0;
            let AdaptiveLimits {
                from_packets,
                from_patience,
                ..
            } = self.limits;
            self.packets = self
                .packets
                .zip(from_packets)
                .map(|(packets, from)| from + (packets - from) / 2);
            self.patience = from_patience + (self.patience - from_patience) / 2.0;
            self.wait /= 2;
        }
    }

    fn on_spurious_loss(&mut self, spurious: &Spurious, rtt: &RttView) {
        self.losses = 0;
        let waited = spurious.packets_after.saturating_add(1);
        self.packets = self
            .packets
            .map(|packets| waited.min(self.limits.packets).max(packets));
        let round_trip = rtt.latest.max(rtt.smoothed).as_secs_f64();
        if round_trip > 0.0 {
            let patience = spurious.elapsed.as_secs_f64() / round_trip - 1.0 + MARGIN;
            self.patience = patience.min(self.limits.patience).max(self.patience);
            let wait = spurious
                .elapsed
                .saturating_add(scaled(spurious.elapsed, MARGIN));
            self.wait = wait.min(self.limits.wait).max(self.wait);
        }
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(&self.limits)
    }
}
