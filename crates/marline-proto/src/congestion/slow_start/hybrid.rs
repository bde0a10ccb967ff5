//! Hybrid slow start: exit when the round-trip time rises (Ha and Rhee, 2011), as in gQUIC.

use std::sync::Arc;
use std::time::Duration;

use super::{SlowStartDecision, SlowStartExit, SlowStartSample};
use crate::samples::scaled;
use crate::settings::{Domain, Entry, Field, Make, Settings, Spec};

/// Its name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn SlowStartExit>, HybridConfig> = Entry {
    name: "hybrid",
    about: "Leave when a round's smallest round-trip time exceeds the path's (Ha and Rhee, 2011)",
    parameters: HybridConfig::SETTINGS,
    default: HybridConfig::default,
    make: |config| Arc::new(move || Box::new(HybridSlowStart::new(config))),
};

/// The settings of [`HybridSlowStart`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridConfig {
    /// Rise of the round-trip time that ends slow start, as a part of the smallest one.
    pub factor: f64,
    /// The smallest rise that ends slow start.
    pub min_rise: Duration,
    /// A rise of this much always ends slow start, unless it is `None`.
    pub max_rise: Option<Duration>,
    /// Samples that a round needs before it is judged.
    pub min_samples: u32,
    /// Windows of fewer full datagrams than this stay in slow start.
    pub low_window: u64,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self {
            factor: 0.125,
            min_rise: Duration::from_millis(4),
            max_rise: Some(Duration::from_millis(16)),
            min_samples: 8,
            low_window: 16,
        }
    }
}

/// The samples of a round so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Smallest round-trip time of the path.
    pub session_min: Duration,
    /// Smallest round-trip time of this round.
    pub round_min: Duration,
    /// Samples in this round.
    pub samples: u32,
    /// The window, in full datagrams.
    pub window_packets: u64,
}

impl HybridConfig {
    /// Values of [`Self::factor`].
    pub(super) const FACTOR: Domain = Domain::number(0.0, 10.0);
    /// Values of [`Self::min_rise`] and [`Self::max_rise`].
    pub(super) const RISE: Domain = Domain::time(Duration::ZERO, Duration::from_secs(10));
    /// Values of [`Self::min_samples`].
    pub(super) const SAMPLES: Domain = Domain::integer(1, 1000);
    /// Values of [`Self::low_window`].
    pub(super) const LOW_WINDOW: Domain = Domain::integer(0, 10_000);

    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "factor",
            Self::FACTOR,
            "Rise of the round-trip time that ends slow start, as a part of the smallest one",
            |c: &mut Self| &mut c.factor,
        ),
        &Field::new(
            "min_rise",
            Self::RISE,
            "The least rise that ends slow start",
            |c: &mut Self| &mut c.min_rise,
        ),
        &Field::new(
            "max_rise",
            Self::RISE.or("none"),
            "A rise of this much ends slow start, whatever the factor says",
            |c: &mut Self| &mut c.max_rise,
        ),
        &Field::new(
            "min_samples",
            Self::SAMPLES,
            "Samples that a round needs before it is judged",
            |c: &mut Self| &mut c.min_samples,
        ),
        &Field::new(
            "low_window",
            Self::LOW_WINDOW,
            "Windows of fewer full datagrams than this stay in slow start",
            |c: &mut Self| &mut c.low_window,
        ),
    ];

    /// The rise that ends slow start; `None` while the round cannot be judged.
    pub fn threshold(&self, round: &Round) -> Option<Duration> {
        if round.samples < self.min_samples || round.window_packets < self.low_window {
            return None;
        }
        let rise = scaled(round.session_min, self.factor).max(self.min_rise);
        Some(self.max_rise.map_or(rise, |max| rise.min(max)))
    }

    /// Whether the round ends slow start.
    pub fn exits(&self, round: &Round) -> bool {
        self.threshold(round)
            .is_some_and(|rise| round.round_min > round.session_min.saturating_add(rise))
    }
}

/// Ends slow start when a round's smallest round-trip time exceeds the path's by a threshold.
#[derive(Debug, Default)]
pub struct HybridSlowStart {
    config: HybridConfig,
    round_min: Option<Duration>,
    samples: u32,
}

impl HybridSlowStart {
    /// With settings other than the default.
    pub fn new(config: HybridConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }
}

impl SlowStartExit for HybridSlowStart {
    fn on_round_start(&mut self) {
        self.round_min = None;
        self.samples = 0;
    }

    fn on_ack(&mut self, sample: &SlowStartSample) -> SlowStartDecision {
        let Some(rtt) = sample.rtt else {
            return SlowStartDecision::Stay;
        };
        let round_min = self.round_min.map_or(rtt, |min| min.min(rtt));
        self.round_min = Some(round_min);
        self.samples = self.samples.saturating_add(1);
        let exits = self.config.exits(&Round {
            session_min: sample.min_rtt,
            round_min,
            samples: self.samples,
            window_packets: sample.window / sample.max_datagram_size.max(1),
        });
        if exits {
            SlowStartDecision::Exit
        } else {
            SlowStartDecision::Stay
        }
    }

    fn reset(&mut self) {
        self.on_round_start();
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(&self.config)
    }
}
