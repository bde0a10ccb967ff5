//! Thresholds that never change.

use std::sync::Arc;
use std::time::Duration;

use super::LossDetector;
use crate::recovery::GRANULARITY;
use crate::samples::{RttView, scaled};
use crate::settings::{Domain, Entry, Field, Make, Settings, Spec};

type FixedEntry = Entry<Make<dyn LossDetector>, Thresholds>;

/// Its name and parameters in settings, as RFC 9002 recommends them.
pub(super) const RFC9002: FixedEntry = Entry {
    name: "rfc9002",
    about: "3 packets, or 9/8 of a round trip (RFC 9002, section 6.1)",
    parameters: Thresholds::SETTINGS,
    default: || Fixed::rfc9002().thresholds,
    make: |thresholds| Arc::new(move || Box::new(Fixed::new("rfc9002", thresholds))),
};

/// The same as gQUIC had it.
pub(super) const GQUIC: FixedEntry = Entry {
    name: "gquic",
    about: "Time alone: 9/8 of a round trip, as gQUIC had it",
    default: || Fixed::gquic().thresholds,
    make: |thresholds| Arc::new(move || Box::new(Fixed::new("gquic", thresholds))),
    ..RFC9002
};

/// The same for links that reorder.
pub(super) const PATIENT: FixedEntry = Entry {
    name: "patient",
    about: "Time alone: 3/2 of a round trip, for links that hold packets back and reorder them",
    default: || Fixed::patient().thresholds,
    make: |thresholds| Arc::new(move || Box::new(Fixed::new("patient", thresholds))),
    ..RFC9002
};

/// When a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Packet numbers behind the largest acknowledged one; `None` if only time decides.
    pub packets: Option<u64>,
    /// What time to wait beyond a round trip, as a part of it.
    pub patience: f64,
    /// Time to wait at least.
    pub granularity: Duration,
}

impl Thresholds {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "packets",
            Domain::integer(3, 1_000_000).or("none"),
            "Packet numbers behind the largest acknowledged one; none if only time decides",
            |c: &mut Self| &mut c.packets,
        ),
        &Field::new(
            "patience",
            Domain::number(0.0, 10.0),
            "Time to wait beyond a round trip, as a part of it",
            |c: &mut Self| &mut c.patience,
        ),
        &Field::new(
            "granularity",
            Domain::time(Duration::from_micros(1), Duration::from_secs(1)),
            "Time to wait at least",
            |c: &mut Self| &mut c.granularity,
        ),
    ];

    /// Three packets, or nine eighths of a round trip (RFC 9002, section 6.1).
    pub const RFC9002: Self = Self {
        packets: Some(3),
        patience: 0.125,
        granularity: GRANULARITY,
    };

    /// Time since sending after which a packet is lost: the larger of the newest and the smoothed
    /// round-trip time, and the patience on top.
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
    /// `thresholds` under a name of their own.
    pub const fn new(name: &'static str, thresholds: Thresholds) -> Self {
        Self { thresholds, name }
    }

    /// As RFC 9002, section 6.1 recommends.
    pub const fn rfc9002() -> Self {
        Self::new("rfc9002", Thresholds::RFC9002)
    }

    /// As gQUIC had it: time alone decides, an eighth of a round trip beyond it.
    pub const fn gquic() -> Self {
        Self::new(
            "gquic",
            Thresholds {
                packets: None,
                ..Thresholds::RFC9002
            },
        )
    }

    /// For links that hold packets back and reorder them: time alone decides, half a round trip
    /// beyond it.
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
