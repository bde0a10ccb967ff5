//! Loss detection with fixed thresholds.

use std::sync::Arc;
use std::time::Duration;

use super::LossDetector;
use crate::recovery::GRANULARITY;
use crate::samples::{RttView, scaled};
use crate::settings::{Domain, Entry, Make, Settings, Spec, field};

type FixedEntry = Entry<Make<dyn LossDetector>, Thresholds>;

/// Name and parameters in settings of the thresholds of RFC 9002.
pub(super) const RFC9002: FixedEntry = Entry {
    name: "rfc9002",
    about: "3 packets, or 9/8 of a round trip (RFC 9002, section 6.1)",
    parameters: Thresholds::SETTINGS,
    default: || Fixed::rfc9002().thresholds,
    make: |thresholds| Arc::new(move || Box::new(Fixed::new("rfc9002", thresholds))),
};

/// Name and parameters in settings of the thresholds of gQUIC.
pub(super) const GQUIC: FixedEntry = Entry {
    name: "gquic",
    about: "Only time: 9/8 of a round trip, as in gQUIC",
    default: || Fixed::gquic().thresholds,
    make: |thresholds| Arc::new(move || Box::new(Fixed::new("gquic", thresholds))),
    ..RFC9002
};

/// Name and parameters in settings of the thresholds for links that reorder.
pub(super) const PATIENT: FixedEntry = Entry {
    name: "patient",
    about: "Only time: 3/2 of a round trip, for links that delay and reorder packets",
    default: || Fixed::patient().thresholds,
    make: |thresholds| Arc::new(move || Box::new(Fixed::new("patient", thresholds))),
    ..RFC9002
};

/// Loss thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Packet threshold, in packet numbers below the largest acknowledged one; `None` to use the
    /// time threshold only.
    pub packets: Option<u64>,
    /// Additional waiting time as a fraction of the round-trip time.
    pub patience: f64,
    /// Minimum waiting time.
    pub granularity: Duration,
}

impl Thresholds {
    /// The parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        field!(
            packets: Domain::integer(3, 1_000_000).or("none"),
            "Packet threshold; none to use the time threshold only"
        ),
        field!(patience: Domain::number(0.0, 10.0), "Additional waiting time as a fraction of the round-trip time"),
        field!(granularity: Domain::time(Duration::from_micros(1), Duration::from_secs(1)), "Minimum waiting time"),
    ];

    /// Three packets, or nine eighths of a round trip (RFC 9002, section 6.1).
    pub const RFC9002: Self = Self {
        packets: Some(3),
        patience: 0.125,
        granularity: GRANULARITY,
    };

    /// Time threshold since sending: the larger of the latest and the smoothed round-trip time,
    /// plus the additional waiting time.
    pub fn time(&self, rtt: &RttView) -> Duration {
        let rtt = rtt.latest.max(rtt.smoothed);
        rtt.saturating_add(scaled(rtt, self.patience))
            .max(self.granularity)
    }
}

/// Loss detection with fixed thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed {
    thresholds: Thresholds,
    name: &'static str,
}

impl Fixed {
    /// A detector with `thresholds` and a name of its own.
    pub const fn new(name: &'static str, thresholds: Thresholds) -> Self {
        Self { thresholds, name }
    }

    /// The thresholds of RFC 9002, section 6.1.
    pub const fn rfc9002() -> Self {
        Self::new("rfc9002", Thresholds::RFC9002)
    }

    /// The thresholds of gQUIC: only time, one and an eighth round trips.
    pub const fn gquic() -> Self {
        Self::new(
            "gquic",
            Thresholds {
                packets: None,
                ..Thresholds::RFC9002
            },
        )
    }

    /// Thresholds for links that delay and reorder packets: only time, one and a half round trips.
    pub const fn patient() -> Self {
        Self::new(
            "patient",
            Thresholds {
                packets: None,
                patience: 0.5,
                ..Thresholds::RFC9002
            },
        )
    }
}

impl LossDetector for Fixed {
    fn time_threshold(&self, rtt: &RttView) -> Duration {
        self.thresholds.time(rtt)
    }

    fn packet_threshold(&self) -> Option<u64> {
        self.thresholds.packets
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn spec(&self) -> Spec {
        let entries = [&RFC9002, &GQUIC, &PATIENT];
        let entry = entries.into_iter().find(|entry| entry.name == self.name);
        entry.map_or(Spec::named(self.name), |entry| entry.spec(&self.thresholds))
    }
}
