//! Link models and their properties that follow from their settings.
//!
//! Their expected values are computed from the settings by a formula of the named source, independently of the model.

use super::Quantity::*;
use super::promises::{Promise, between, near};
use super::quantity::Stations;

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
const SHARES: &str = "independent losses";
const CHAIN: &str = "Gilbert (1960): N packets";
const PERIODS: &str = "on-off process, sampled";
const ROWS: &str = "N, and rows that touch";
const EVERY: &str = "1 / N";
const MD1: &str = "M/D/1";
const MD1N: &str = "M/D/1/5, embedded Markov chain";
const EXCESS: &str = "1 - 1 / load";
const REDS: &str = "Floyd and Jacobson 1993, uniform gaps";
const CONTROL: &str = "RFC 8289: interval / sqrt(count)";
const TARGET: &str = "RFC 9332: target, and a packet";
const FAIR: &str = "RFC 8290: one in five flows";
const NETEM: &str = "moments of a chance of one in four";
const FABIUS: &str = "Fabius function at 1/4: 5/72";
const LATER: &str = "RFC 4737: one of three later comes first";
const BIANCHI: &str = "Bianchi 2000, retries and frozen backoff";
const MOMENTS: &str = "moments of the distribution";
const PROCESS: &str = "Ornstein-Uhlenbeck, averaged over 1 s";
const OPPORTUNITIES: &str = "1,504 bytes a line, by the last time";
const STEP: &str = "M/D/1: waits above T, others behind";
const COPIES: &str = "100 % + S";
const ERRORS: &str = "independent errors";
const MAPPINGS: &str = "RFC 4787: one of two pauses is longer";
const TBF: &str = "tc-tbf: limit = rate x latency + burst";

/// In the order in which they are checked.
pub(super) const MODELS: &[Model] = &[
    Model {
        name: "loss",
        link: "loss=2%,rtt=20ms",
        trace: None,
        promises: &[
            near(LossUp, 2.0, 0.1, SHARES),
            near(LossDown, 2.0, 0.1, SHARES),
            // 1 / (1 - S).
            near(LossRun, 1.0204, 0.01, SHARES),
        ],
    },
    Model {
        name: "loss-burst",
        link: "loss=2%,loss-burst=3p,rtt=20ms",
        trace: None,
        promises: &[
            near(LossUp, 2.0, 0.2, CHAIN),
            near(LossDown, 2.0, 0.2, CHAIN),
            near(LossRun, 3.0, 0.15, CHAIN),
        ],
    },
    Model {
        name: "loss-burst-time",
        link: "loss=2%,loss-burst=2ms,rtt=20ms",
        trace: None,
        promises: &[
            near(LossUp, 2.0, 0.3, PERIODS),
            near(LossDown, 2.0, 0.3, PERIODS),
            // 1 / ((1 - S) (1 - exp(-d / (2 ms (1 - S))))), with a packet each d = 0.5 ms.
            near(LossRun, 4.532, 0.3, PERIODS),
        ],
    },
    Model {
        name: "loss-row",
        link: "loss=2%,loss-row=5,rtt=20ms",
        trace: None,
        promises: &[
            near(LossUp, 2.0, 0.2, ROWS),
            near(LossDown, 2.0, 0.2, ROWS),
            // 5 / (1 - p), where p = 1 / (1 + 5 x 49) begins a row.
            near(LossRun, 5.02, 0.03, ROWS),
        ],
    },
    Model {
        name: "loss-every",
        link: "loss-every=50,rtt=20ms",
        trace: None,
        promises: &[
            near(LossUp, 2.0, 0.0, EVERY),
            near(LossDown, 2.0, 0.0, EVERY),
        ],
    },
    Model {
        name: "errors",
        link: "duplicate=2%,corrupt=1%,rtt=20ms",
        trace: None,
        promises: &[
            near(Arrived, 102.0, 0.1, COPIES),
            near(Corrupted, 1.0, 0.07, ERRORS),
            near(LossUp, 0.0, 0.0, COPIES),
            near(LossDown, 0.0, 0.0, COPIES),
        ],
    },
    Model {
        name: "nat",
        link: "nat=30s,rtt=20ms",
        trace: None,
        promises: &[
            near(Rebound, 50.0, 0.0, MAPPINGS),
            near(Unmapped, 50.0, 0.0, MAPPINGS),
        ],
    },
    Model {
        name: "droptail",
        link: "rate=10mbps,buffer=1MB,rtt=20ms",
        trace: None,
        promises: &[
            // 10 ms, and 1.2 ms (1 + 0.8 / (2 - 2 x 0.8)).
            near(RandomDelay, 13.6, 0.08, MD1),
            near(RandomLoss, 0.0, 0.0, MD1),
            near(OverloadLoss, 4.762, 0.05, EXCESS),
        ],
    },
    Model {
        name: "droptail-short",
        link: "rate=10mbps,buffer=4p,rtt=20ms",
        trace: None,
        promises: &[
            // 10 ms, and 2.2097 x 1.2 ms.
            near(RandomDelay, 12.652, 0.03, MD1N),
            near(RandomLoss, 3.529, 0.15, MD1N),
        ],
    },
    Model {
        name: "drophead-short",
        link: "rate=10mbps,buffer=4p,queue=drophead,rtt=20ms",
        trace: None,
        // As many packets wait as behind a drop-tail queue, whichever of them are dropped.
        promises: &[near(RandomLoss, 3.529, 0.15, MD1N)],
    },
    Model {
        name: "red",
        link: "rate=10mbps,buffer=500kB,queue=red,rtt=20ms",
        trace: None,
        promises: &[
            near(OverloadLoss, 4.762, 0.25, EXCESS),
            // Gaps of 1 / (2 p) on average: p = 2.381 % at 61.5 kB, after 10 ms, half a packet, and the packet's own time.
            near(OverloadDelay, 61.0, 1.5, REDS),
        ],
    },
    Model {
        name: "codel",
        link: "rate=10mbps,buffer=100MB,queue=codel,rtt=20ms",
        trace: None,
        // The first after 110 ms, and the sum of 100 ms / sqrt(k) is below what is left of 10 s.
        promises: &[near(Drops, 2518.0, 3.0, CONTROL)],
    },
    Model {
        name: "codel-ecn",
        link: "rate=10mbps,buffer=100MB,queue=codel,ecn=on,rtt=20ms",
        trace: None,
        // At the times of drops, less those of the last 11.2 ms, which are on their way.
        promises: &[
            near(Marks, 2512.0, 3.0, CONTROL),
            near(Drops, 0.0, 0.0, CONTROL),
        ],
    },
    Model {
        name: "mark",
        link: "rate=10mbps,buffer=1MB,mark=2.4ms,rtt=20ms",
        trace: None,
        // P(W > 2 packets' times) = 36.55 %, less those that leave the queue empty: the mean of 1 - exp(-0.8 W) over W > 2.
        promises: &[
            near(RandomMarked, 33.97, 0.9, STEP),
            near(RandomLoss, 0.0, 0.0, MD1),
        ],
    },
    Model {
        name: "fq-codel",
        link: "rate=10mbps,queue=fq-codel,rtt=20ms",
        trace: None,
        promises: &[
            near(Goodput, 10.0, 0.02, FAIR),
            near(LoneShare, 20.0, 0.3, FAIR),
            near(SparseDelay, 10.67, 0.15, RESIDUAL),
        ],
    },
    Model {
        name: "dualpi2",
        link: "rate=10mbps,queue=dualpi2,rtt=20ms",
        trace: None,
        promises: &[
            near(OverloadLoss, 4.762, 0.15, EXCESS),
            // 10 ms, the target, half a packet as its oldest packet is the measure, and the packet's own time.
            near(OverloadDelay, 26.8, 0.6, TARGET),
        ],
    },
    Model {
        name: "policer",
        link: "policer=10mbps,policer-burst=64kB,rtt=20ms",
        trace: None,
        promises: &[
            near(Goodput, 10.0, 0.02, TOKENS),
            near(AtOnce, 128.0, 0.0, TOKENS),
        ],
    },
    Model {
        name: "rate-std",
        link: "rate=10mbps,rate-std=2.5mbps,rate-tau=100ms,buffer=1MB,rtt=20ms",
        trace: None,
        promises: &[
            near(Goodput, 10.0, 0.13, PROCESS),
            // 2.5 Mb/s sqrt(2 x 0.1 (0.9 + 0.1 exp(-10))).
            near(GoodputDeviation, 1.06, 0.06, PROCESS),
        ],
    },
    Model {
        name: "trace",
        link: "trace=TRACE,buffer=100p,rtt=20ms",
        trace: Some("1\n2\n10\n"),
        // Three opportunities in 10 ms.
        promises: &[near(Goodput, 3.6096, 0.005, OPPORTUNITIES)],
    },
    Model {
        name: "jitter-normal",
        link: "delay=50ms,jitter=5ms,jitter-law=normal",
        trace: None,
        promises: &[
            near(RttMean, 100.0, 0.2, MOMENTS),
            near(RttDeviation, 7.071, 0.15, MOMENTS),
        ],
    },
    Model {
        name: "jitter-uniform",
        link: "delay=50ms,jitter=5ms,jitter-law=uniform",
        trace: None,
        promises: &[
            near(RttMean, 100.0, 0.2, MOMENTS),
            near(RttDeviation, 4.082, 0.1, MOMENTS),
        ],
    },
    Model {
        name: "jitter-exponential",
        link: "delay=50ms,jitter=5ms,jitter-law=exponential",
        trace: None,
        promises: &[
            near(RttMean, 110.0, 0.2, MOMENTS),
            near(RttDeviation, 7.071, 0.3, MOMENTS),
        ],
    },
    Model {
        name: "jitter-pareto",
        link: "delay=50ms,jitter=5ms,jitter-law=pareto",
        trace: None,
        promises: &[near(RttMean, 100.0, 0.3, MOMENTS)],
    },
    Model {
        name: "overtake",
        link: "delay=1.8ms,overtake=25%",
        trace: None,
        // Tolerances are four standard errors of 40,000 packets or pings.
        promises: &[
            near(Ahead, 25.0, 0.9, NETEM),
            // Twice 75 % of 1.8 ms, and sqrt(2 x 0.25 x 0.75) of it.
            near(RttMean, 2.7, 0.023, NETEM),
            near(RttDeviation, 1.102, 0.015, NETEM),
            // 75 % of 1 - 0.75^3, as three packets follow in 1.8 ms; packets of seven neighbors depend on each other.
            near(Reordered, 43.36, 2.6, LATER),
            near(LossUp, 0.0, 0.0, NETEM),
            near(LossDown, 0.0, 0.0, NETEM),
        ],
    },
    Model {
        name: "overtake-corr",
        link: "delay=1.8ms,overtake=25%,overtake-corr=50%",
        trace: None,
        // The filtered value is the sum of U / 2^k over k = 1, 2, ... Of indicators whose correlation halves from one to the
        // next the variance of the mean is at most three times that of independent ones.
        promises: &[near(Ahead, 6.944, 0.9, FABIUS)],
    },
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
        trace: Some("0 10\n10000 30\n20000 30\n"),
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
        link: "rate=24mbps,buffer=240kB,handover=1s,handover-delay=0ms..6ms,handover-rate=20%..100%,handover-gap=20ms,rtt=30ms",
        trace: None,
        promises: &[
            near(RttMean, 36.2, 0.3, UNIFORM),
            near(RttDeviation, 3.46, 0.15, UNIFORM),
            // 60 % on average, of which the gap takes its share.
            near(Goodput, 14.11, 0.36, UNIFORM),
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
    Model {
        name: "wifi-stations",
        link: "model=wifi,wifi.aggregation=off",
        trace: None,
        // `equations::saturation`; the tolerance is its error by treating stations as independent, and four standard errors
        // of 30 s.
        promises: &[
            near(Saturated(Stations::new(1)), 30.79, 0.07, BIANCHI),
            near(Saturated(Stations::new(2)), 31.30, 0.35, BIANCHI),
            near(Saturated(Stations::new(3)), 30.73, 0.35, BIANCHI),
            near(Saturated(Stations::new(4)), 30.09, 0.35, BIANCHI),
            near(Saturated(Stations::new(5)), 29.51, 0.35, BIANCHI),
            near(Saturated(Stations::new(6)), 29.01, 0.35, BIANCHI),
            near(Saturated(Stations::new(7)), 28.57, 0.35, BIANCHI),
            near(Saturated(Stations::new(8)), 28.18, 0.35, BIANCHI),
            near(Saturated(Stations::new(9)), 27.84, 0.35, BIANCHI),
            near(Saturated(Stations::new(10)), 27.52, 0.35, BIANCHI),
        ],
    },
];
