//! Workloads of experiments and their metrics that follow from their settings.
//!
//! Their expected values are computed by the equations of a player and of a link that is always busy, independently of the
//! workload. Tests compute them again, see `equations`.

use super::Quantity::*;
use super::promises::{Promise, between, near};

/// A workload on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WorkloadModel {
    pub(super) name: &'static str,
    /// The link in the syntax of [`LinkSpec`](marline_link::LinkSpec).
    pub(super) link: &'static str,
    /// The other keys of the experiment.
    pub(super) workload: &'static str,
    pub(super) promises: &'static [Promise],
}

const PLAYER: &str = "a segment takes RTT + bytes / rate";
const FESTIVE: &str = "highest rate below 90 % of the throughput";
const BBA: &str = "BBA-0 (2014) over the time of segments";
const QOE: &str = "Yin et al. 2015: rate, changes, stalls";
const FRAME: &str = "one-way delay + bytes / rate";
const PARTS: &str = "1 - (1 - S)^2: two packets a frame";
const STREAMS: &str = "RFC 9000: streams are reliable";

/// In the order in which they are checked.
pub(super) const WORKLOADS: &[WorkloadModel] = &[
    WorkloadModel {
        name: "video-throughput",
        link: "rate=600kbps,rtt=40ms,buffer=1MB",
        workload: "workload.video = { ladder = ['100kbps', '200kbps', '400kbps', '800kbps'], length = '80s', \
                   choice = 'throughput' }",
        promises: &[
            // One segment at 100 kb/s, when nothing is known, and 19 at 400 kb/s.
            near(VideoRate, 0.385, 0.0005, FESTIVE),
            near(VideoSwitches, 1.0, 0.0, FESTIVE),
            near(VideoStalls, 0.0, 0.0, PLAYER),
            // (7.7 - 0.3) / 20 Mb/s.
            near(VideoQuality, 0.37, 0.0005, QOE),
            between(VideoStart, 0.802, 0.873, PLAYER),
        ],
    },
    WorkloadModel {
        name: "video-buffer",
        link: "rate=600kbps,rtt=40ms,buffer=1MB",
        workload: "workload.video = { ladder = ['100kbps', '200kbps', '400kbps', '800kbps'], length = '240s', \
                   buffer = '40s', choice = 'buffer' }",
        promises: &[
            between(VideoRate, 0.501, 0.522, BBA),
            between(VideoSwitches, 7.0, 8.0, BBA),
            near(VideoStalls, 0.0, 0.0, BBA),
        ],
    },
    WorkloadModel {
        name: "video-stalls",
        link: "rate=600kbps,rtt=40ms,buffer=1MB",
        workload: "workload.video = { ladder = ['900kbps'], length = '40s' }",
        promises: &[
            // Each of the nine segments after the first takes longer than it plays.
            near(VideoStalls, 9.0, 0.0, PLAYER),
            between(VideoStalled, 20.2, 21.9, PLAYER),
        ],
    },
    WorkloadModel {
        name: "call",
        link: "rate=2mbps,rtt=40ms,buffer=100kB",
        workload: "workload.call = { rate = '160kbps', frames_per_second = 10, length = '60s' }",
        promises: &[
            // 20 ms, and 2,000 bytes in two packets with headers of 50 to 75 bytes, at 2 Mb/s.
            between(CallDelay, 28.4, 28.6, FRAME),
            near(CallLate, 0.0, 0.0, FRAME),
            near(CallLost, 0.0, 0.0, FRAME),
        ],
    },
    WorkloadModel {
        name: "call-loss",
        link: "rate=2mbps,rtt=20ms,buffer=100kB,loss=2%",
        workload: "workload.call = { rate = '400kbps', frames_per_second = 25, length = '200s', deadline = '1s' }",
        // Four standard errors of 5,000 frames.
        promises: &[near(CallLost, 3.96, 1.11, PARTS)],
    },
    WorkloadModel {
        name: "call-loss-streams",
        link: "rate=2mbps,rtt=20ms,buffer=100kB,loss=2%",
        workload: "workload.call = { rate = '400kbps', frames_per_second = 25, length = '60s', deadline = '1s', \
                   over = 'streams' }",
        promises: &[
            near(CallLost, 0.0, 0.0, STREAMS),
            near(CallLate, 0.0, 0.0, STREAMS),
        ],
    },
];
