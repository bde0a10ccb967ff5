//! Link models and their properties that follow from their settings.
//!
//! Their expected values are computed from the settings by a formula of the named source, independently of the model.

use super::Quantity::*;
use super::promises::{Promise, near};

/// A link that shows one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Model {
    pub(super) name: &'static str,
    /// The link in the syntax of [`LinkSpec`](marline_link::LinkSpec).
    pub(super) link: &'static str,
    pub(super) promises: &'static [Promise],
}

const TOKENS: &str = "token bucket, RFC 2697";
const TBF: &str = "tc-tbf: limit = rate x latency + burst";

/// In the order in which they are checked.
pub(super) const MODELS: &[Model] = &[
    Model {
        name: "shaper",
        link: "shaper=10mbps,shaper-burst=50kB,shaper-buffer=100ms,rtt=20ms",
        promises: &[
            near(Goodput, 10.0, 0.02, TOKENS),
            near(AtOnce, 100.0, 0.0, TOKENS),
            // (r L + B) / r, as the burst that is sent at first empties the bucket.
            near(BufferTime, 140.0, 0.5, TBF),
            near(Buffer, 175.0, 0.0, TBF),
            near(LossUp, 0.0, 0.0, TOKENS),
            near(LossDown, 0.0, 0.0, TOKENS),
        ],
    },
    Model {
        name: "shaper-peak",
        link: "shaper=10mbps,shaper-burst=50kB,shaper-peak=20mbps,shaper-buffer=100kB,rtt=20ms",
        promises: &[
            near(Goodput, 10.0, 0.02, TOKENS),
            near(AtOnce, 3.0, 0.0, TOKENS),
            near(BurstRate, 20.0, 0.01, TOKENS),
        ],
    },
];
