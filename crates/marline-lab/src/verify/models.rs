//! Link models and their properties that follow from their settings.
//!
//! Their expected values are computed from the settings by a formula of the named source, independently of the model.

use super::Quantity::*;
use super::promises::{Promise, between, near};

/// A link that shows one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Model {
    pub(super) name: &'static str,
    /// The link in the syntax of [`LinkSpec`](marline_link::LinkSpec).
    pub(super) link: &'static str,
    /// The content of the file that `link` calls `TRACE`.
    pub(super) trace: Option<&'static str>,
    pub(super) promises: &'static [Promise],
}

const AIRTIME: &str = "airtime (802.11-2020) at the TGn path loss";
const CAKE: &str = "Høiland-Jørgensen et al. 2018: host fairness";
const RESIDUAL: &str = "half a packet's time, and its own";
const FRAMES: &str = "1500 / (1500 + overhead)";
const CELLS: &str = "1500 / (53 x cells of 48)";
const THINNED: &str = "one in n, RFC 3449";
const AVERAGE: &str = "mean over time of the trace";
const DUTY: &str = "renewal process: weighted by mean lengths";
const UNIFORM: &str = "moments of the uniform distribution";
const GAP: &str = "gap / interval";
const TOKENS: &str = "token bucket, RFC 2697";
const TBF: &str = "tc-tbf: limit = rate x latency + burst";

/// In the order in which they are checked.
pub(super) const MODELS: &[Model] = &[
    Model {
        name: "shaper",
        link: "shaper=10mbps,shaper-burst=50kB,shaper-buffer=100ms,rtt=20ms",
        trace: None,
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
        trace: None,
        promises: &[
            near(Goodput, 10.0, 0.02, TOKENS),
            near(AtOnce, 3.0, 0.0, TOKENS),
            near(BurstRate, 20.0, 0.01, TOKENS),
        ],
    },
    Model {
        name: "cake",
        link: "rate=10mbps,queue=cake,rtt=20ms",
        trace: None,
        promises: &[
            near(Goodput, 10.0, 0.02, CAKE),
            near(LoneShare, 50.0, 0.5, CAKE),
            // 10 ms of propagation, 0.6 ms, and 84 bytes.
            near(SparseDelay, 10.67, 0.15, RESIDUAL),
        ],
    },
    Model {
        name: "cake-flows",
        link: "rate=10mbps,queue=cake,cake-isolation=flows,rtt=20ms",
        trace: None,
        promises: &[near(LoneShare, 20.0, 0.3, CAKE)],
    },
    Model {
        name: "framing",
        link: "rate=10mbps,overhead=38B,mpu=84B,rtt=20ms",
        trace: None,
        promises: &[near(Goodput, 9.753, 0.01, FRAMES)],
    },
    Model {
        name: "framing-atm",
        link: "rate=10mbps,overhead=8B,atm=on,rtt=20ms",
        trace: None,
        promises: &[near(Goodput, 8.844, 0.01, CELLS)],
    },
    Model {
        name: "ack-thinning",
        link: "ack-thin=4,ack-thin-time=10ms,rtt=20ms",
        trace: None,
        promises: &[
            near(AcksPassed, 25.0, 0.1, THINNED),
            near(LossUp, 0.0, 0.0, THINNED),
        ],
    },
    Model {
        name: "delay-trace",
        link: "delay-trace=TRACE",
        trace: Some("0 10\n500 30\n1000 30\n"),
        promises: &[
            // 20 and 60 ms for the same time; a ping follows 125 ms after the last answer, so that there are more of the
            // short ones: (20/145 + 60/185) / (1/145 + 1/185).
            near(RttMean, 37.6, 0.5, AVERAGE),
            between(RttDeviation, 19.2, 20.2, AVERAGE),
            near(LossUp, 0.0, 0.0, AVERAGE),
            near(LossDown, 0.0, 0.0, AVERAGE),
        ],
    },
    Model {
        name: "blockage",
        link: "rate=10mbps,buffer=100kB,blockage=300ms/100ms,blockage-rate=10%,rtt=20ms",
        trace: None,
        promises: &[near(Goodput, 7.75, 0.12, DUTY)],
    },
    Model {
        name: "handover",
        link: "rate=10mbps,buffer=100kB,handover=1s,handover-delay=0ms..6ms,handover-rate=20%..100%,handover-gap=20ms,rtt=30ms",
        trace: None,
        promises: &[
            near(RttMean, 36.2, 0.3, UNIFORM),
            near(RttDeviation, 3.46, 0.15, UNIFORM),
            // 60 % on average, of which the gap takes its share.
            near(Goodput, 5.88, 0.15, UNIFORM),
            near(LossUp, 2.0, 0.2, GAP),
            near(LossDown, 2.0, 0.2, GAP),
        ],
    },
    Model {
        name: "wifi-near",
        link: "model=wifi,wifi.distance=10m,wifi.rate-control=minstrel",
        trace: None,
        // 28 MPDUs in 5.519 ms with MCS 7; trials of others cost at most a tenth of the transmissions.
        promises: &[between(Payload, 53.0, 60.0, AIRTIME)],
    },
    Model {
        name: "wifi-far",
        link: "model=wifi,wifi.distance=40m,wifi.rate-control=ideal",
        trace: None,
        // SNR of 18.1 dB: MCS 3; 11 MPDUs in 5.423 ms, of which 0.3 % fail.
        promises: &[near(Payload, 23.8, 0.4, AIRTIME)],
    },
    Model {
        name: "wifi-far-minstrel",
        link: "model=wifi,wifi.distance=40m,wifi.rate-control=minstrel",
        trace: None,
        promises: &[between(Payload, 20.5, 23.9, AIRTIME)],
    },
];
