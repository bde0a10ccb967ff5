//! The specified properties of presets.

use std::fmt;

use super::Quantity::{self, *};

/// A promise of a preset or a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Promise {
    pub(super) quantity: Quantity,
    pub(super) expected: Expected,
    /// The source; [`CHOSEN`] without a publication.
    pub(super) source: &'static str,
}

/// The allowed values of a quantity, in its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Expected {
    /// This value, within this tolerance.
    Near(f64, f64),
    /// From the first to the second value.
    Between(f64, f64),
}

impl Expected {
    pub(super) fn holds(self, value: f64) -> bool {
        match self {
            Self::Near(expected, tolerance) => (value - expected).abs() <= tolerance,
            Self::Between(low, high) => (low..=high).contains(&value),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near(expected, 0.0) => write!(f, "{expected}"),
            Self::Near(expected, tolerance) => write!(f, "{expected} ± {tolerance}"),
            Self::Between(low, high) => write!(f, "{low} to {high}"),
        }
    }
}

/// A property that the model has by its settings, and no publication has a value for.
const CHOSEN: &str = "chosen";
const LTE: &str = "measured LTE-Advanced cell";
const MMWAVE: &str = "121 traces of Lumos5G, moments of the fit";
const STARLINK: &str = "NUWiNS, Maine 2024";
const WIFI: &str = "measured 802.11n link";
const HISTORY: &str = "slow-start history study";
const PAGES: &str = "page-load study";
const PATHS: &str = "multipath scheduling study";
const NS3: &str = "ns-3.37 for one hop, over their number";
const MESH: &str = "hops share the air";
const CLIENTS: &str = "Wi-Fi study, sections 6.1 and 6.2.3";
const FITTED: &str = "fitted to TCP in the Wi-Fi study";
const PROBED: &str = "losses are probed faster than the link";
const FEWER: &str = "WCNC 2019: 20 to 30 %, less 1 for chance";

pub(super) const fn near(
    quantity: Quantity,
    value: f64,
    tolerance: f64,
    source: &'static str,
) -> Promise {
    Promise {
        quantity,
        expected: Expected::Near(value, tolerance),
        source,
    }
}

pub(super) const fn between(
    quantity: Quantity,
    low: f64,
    high: f64,
    source: &'static str,
) -> Promise {
    Promise {
        quantity,
        expected: Expected::Between(low, high),
        source,
    }
}

/// By the preset's name.
pub(super) const PROMISES: &[(&str, &[Promise])] = &[
    (
        "lte-a",
        &[
            near(RttMedian, 46.2, 0.3, LTE),
            near(RttDeviation, 3.5, 0.3, LTE),
            near(RttRetried, 14.7, 1.0, CHOSEN),
            near(Goodput, 65.9, 1.0, LTE),
            near(GoodputDeviation, 5.1, 0.4, LTE),
            near(LossDown, 0.14, 0.02, LTE),
            near(LossUp, 0.14, 0.02, LTE),
            near(Buffer, 1000.0, 0.0, CHOSEN),
        ],
    ),
    (
        "lte-a-lossy",
        &[
            near(RttMedian, 46.2, 0.3, LTE),
            near(RttDeviation, 3.5, 0.3, LTE),
            // Losses are in front of the radio, which has enough to send nevertheless.
            near(Goodput, 65.9, 1.0, LTE),
            near(GoodputDeviation, 5.1, 0.4, LTE),
            near(LossDown, 1.09, 0.06, LTE),
            near(LossUp, 1.09, 0.06, LTE),
        ],
    ),
    (
        "lte-a-international",
        &[
            near(RttMedian, 171.2, 0.3, LTE),
            near(RttDeviation, 3.5, 0.3, LTE),
            near(Goodput, 65.9, 1.0, LTE),
            near(GoodputDeviation, 5.1, 0.4, LTE),
            near(LossDown, 0.14, 0.02, LTE),
            near(LossUp, 0.14, 0.02, LTE),
        ],
    ),
    (
        "lte-a-international-lossy",
        &[
            near(RttMedian, 171.2, 0.3, LTE),
            near(RttDeviation, 3.5, 0.3, LTE),
            near(Goodput, 65.9, 1.0, LTE),
            near(GoodputDeviation, 5.1, 0.4, LTE),
            near(LossDown, 1.09, 0.06, LTE),
            near(LossUp, 1.09, 0.06, LTE),
        ],
    ),
    (
        "lte-a-poor",
        &[
            near(RttMedian, 46.2, 0.3, LTE),
            near(Goodput, 35.4, 1.0, LTE),
            near(GoodputDeviation, 5.1, 0.4, LTE),
            near(LossDown, 0.14, 0.02, LTE),
            near(LossUp, 0.14, 0.02, LTE),
        ],
    ),
    (
        "lte-a-very-good",
        &[
            near(RttMedian, 46.2, 0.3, LTE),
            near(Goodput, 94.1, 1.0, LTE),
            near(GoodputDeviation, 5.1, 0.4, LTE),
            near(LossDown, 0.14, 0.02, LTE),
            near(LossUp, 0.14, 0.02, LTE),
        ],
    ),
    (
        "5g-mmwave",
        &[
            // Not the mean, as pings wait while the rate is 0.
            near(RttMedian, 28.0, 0.3, CHOSEN),
            near(Goodput, 526.6, 120.0, MMWAVE),
            near(GoodputDeviation, 461.0, 80.0, MMWAVE),
            near(LossDown, 0.0, 0.0, CHOSEN),
            near(LossUp, 0.0, 0.0, CHOSEN),
        ],
    ),
    (
        "leo-starlink",
        &[
            near(RttMedian, 44.2, 1.5, STARLINK),
            near(Goodput, 227.0, 20.0, STARLINK),
            near(GoodputDeviation, 109.0, 10.0, STARLINK),
            near(LossDown, 0.27, 0.15, CHOSEN),
            near(LossUp, 0.27, 0.15, CHOSEN),
        ],
    ),
    (
        "wifi-n-190",
        &[
            near(RttMean, 10.5, 0.3, WIFI),
            near(RttDeviation, 6.1, 0.4, WIFI),
            near(PayloadAcknowledged, 190.0, 4.0, WIFI),
            near(LossDown, 0.0, 0.0, CHOSEN),
            near(LossUp, 0.0, 0.0, CHOSEN),
            near(Buffer, 1000.0, 0.0, CHOSEN),
        ],
    ),
    (
        "wan-100-good",
        &[
            near(RttMean, 38.0, 0.1, HISTORY),
            near(Goodput, 99.0, 0.5, HISTORY),
            near(LossDown, 1.0, 0.06, HISTORY),
            near(LossUp, 1.0, 0.06, HISTORY),
            near(LossRun, 1.01, 0.01, CHOSEN),
            near(BufferPackets, 313.0, 1.0, HISTORY),
        ],
    ),
    (
        "wan-100-average",
        &[
            near(RttMean, 50.0, 0.1, HISTORY),
            near(Goodput, 98.0, 0.5, HISTORY),
            near(LossDown, 2.0, 0.1, HISTORY),
            near(LossUp, 2.0, 0.1, HISTORY),
            near(LossRun, 1.02, 0.01, CHOSEN),
            near(BufferPackets, 412.0, 1.0, HISTORY),
        ],
    ),
    (
        "wan-100-bad",
        &[
            near(RttMean, 188.0, 0.1, HISTORY),
            near(Goodput, 92.0, 0.5, HISTORY),
            near(LossDown, 8.0, 0.2, HISTORY),
            near(LossUp, 8.0, 0.2, HISTORY),
            near(LossRun, 1.087, 0.01, CHOSEN),
            near(BufferPackets, 1549.0, 1.0, HISTORY),
        ],
    ),
    (
        "wifi-7",
        &[
            near(RttMean, 50.0, 0.5, PAGES),
            near(Goodput, 6.86, 0.04, PAGES),
            near(LossDown, 2.0, 0.1, PAGES),
            near(LossUp, 2.0, 0.1, PAGES),
            near(LossRun, 1.02, 0.01, CHOSEN),
            near(Buffer, 45.0, 0.0, PAGES),
            near(BufferTime, 51.0, 1.0, PAGES),
        ],
    ),
    (
        "ecmp",
        &[
            near(RttMean, 50.0, 0.5, PAGES),
            near(Goodput, 10.0, 0.05, PAGES),
            near(LossDown, 0.0, 0.0, CHOSEN),
            near(LossUp, 0.0, 0.0, CHOSEN),
            near(Buffer, 62.5, 0.0, CHOSEN),
        ],
    ),
    (
        "mesh-2",
        &[
            between(RttMean, 10.0, 11.0, CHOSEN),
            near(Payload, 128.0, 13.0, NS3),
            near(HopShare, 0.5, 0.05, MESH),
            between(FewerAcks, 19.0, 30.0, FEWER),
            // All attempts to send an A-MPDU may collide, occasionally.
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "mesh-3",
        &[
            between(RttMean, 10.0, 11.0, CHOSEN),
            near(Payload, 85.3, 13.0, NS3),
            near(HopShare, 0.33, 0.05, MESH),
            between(FewerAcks, 19.0, 30.0, FEWER),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "mesh-2-slow",
        &[
            between(RttMean, 10.0, 11.0, CHOSEN),
            near(Payload, 29.8, 3.0, NS3),
            near(HopShare, 0.5, 0.05, MESH),
            between(FewerAcks, 19.0, 30.0, FEWER),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "mesh-3-slow",
        &[
            between(RttMean, 10.0, 11.0, CHOSEN),
            near(Payload, 19.9, 3.0, NS3),
            near(HopShare, 0.33, 0.05, MESH),
            between(FewerAcks, 19.0, 30.0, FEWER),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "mp-2-first",
        &[
            near(RttMean, 20.0, 0.5, PATHS),
            near(Goodput, 10.0, 0.05, PATHS),
            near(LossDown, 0.0, 0.0, CHOSEN),
            near(LossUp, 0.0, 0.0, CHOSEN),
            near(BufferTime, 200.0, 1.0, CHOSEN),
        ],
    ),
    (
        "mp-2-second",
        &[
            near(RttMean, 80.0, 0.5, PATHS),
            near(Goodput, 5.0, 0.05, PATHS),
            near(LossDown, 0.0, 0.0, CHOSEN),
            near(LossUp, 0.0, 0.0, CHOSEN),
            near(BufferTime, 400.0, 1.0, CHOSEN),
        ],
    ),
    (
        "thesis-rp1",
        &[
            near(RttMean, 36.0, 0.5, CLIENTS),
            near(Payload, 83.4, 1.0, FITTED),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "thesis-rp2",
        &[
            near(RttMean, 38.2, 1.0, CHOSEN),
            near(Payload, 81.8, 4.0, FITTED),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "thesis-rp3",
        &[
            near(RttMean, 44.0, 2.0, CLIENTS),
            near(Payload, 77.1, 4.0, FITTED),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "thesis-rp4",
        &[
            near(RttMean, 90.0, 4.0, CLIENTS),
            near(Payload, 6.6, 0.7, FITTED),
            between(LossDown, 0.0, 30.0, PROBED),
            between(LossUp, 0.0, 30.0, PROBED),
        ],
    ),
    (
        "thesis-rp5",
        &[
            near(RttMean, 49.7, 3.0, CHOSEN),
            near(Payload, 13.4, 0.8, FITTED),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "thesis-rp6",
        &[
            near(RttMean, 38.1, 1.0, CHOSEN),
            near(Payload, 68.5, 3.5, FITTED),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "thesis-rp7",
        &[
            near(RttMean, 41.5, 1.5, CHOSEN),
            near(Payload, 40.8, 2.5, FITTED),
            between(LossDown, 0.0, 0.05, CHOSEN),
            between(LossUp, 0.0, 0.05, CHOSEN),
        ],
    ),
    (
        "thesis-rp8",
        &[
            near(RttMean, 77.5, 6.0, CHOSEN),
            near(Payload, 5.5, 0.8, FITTED),
            between(LossDown, 0.0, 30.0, PROBED),
            between(LossUp, 0.0, 30.0, PROBED),
        ],
    ),
];
