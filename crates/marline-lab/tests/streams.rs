//! Streams with weights, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod job;

use std::collections::BTreeMap;

use marline_lab::scenario::{Backend, Experiment, Job};
use marline_lab::sim::Simulator;

use self::job::job;

/// The metrics of each variant of a scenario with one run each.
fn run(text: &str) -> BTreeMap<String, BTreeMap<String, f64>> {
    let experiment = Experiment::parse(text, "test.toml", &[]).unwrap();
    let outcomes = experiment.cells.iter().map(|cell| {
        let outcome = Simulator.run(&job(cell)).unwrap();
        (cell.variant.to_string(), outcome.metrics)
    });
    outcomes.collect()
}

/// Large streams, and a small one with a larger weight that is requested last.
const BESIDE_LARGE: &str = r#"
title = "Beside large streams"
link = "rate=10mbps, rtt=20ms, buffer=1MB"
cc = "newreno"
[workload]
warm = true
streams = [
    { id = 1, size = "128kB", weight = 110, urgency = 5 },
    { id = 2, size = "128kB", weight = 110, urgency = 5 },
    { id = 3, size = "128kB", weight = 110, urgency = 5, group = "large" },
    { id = 4, size = "128kB", weight = 110, urgency = 5, group = "large" },
    { id = 5, size = "5kB", weight = 255, urgency = 1 },
]
[variant.fifo]
stream_scheduler = "fifo"
[variant.rfc9218]
stream_scheduler = "rfc9218"
[variant.wrr]
stream_scheduler = "wrr"
[variant.scattered]
stream_scheduler = "scattered_wrr"
"#;

/// A packet of 1,500 bytes on the link, in seconds.
const PACKET_S: f64 = 1500.0 * 8.0 / 10e6;

#[test]
fn a_heavier_stream_ends_early_if_the_scheduler_uses_weights() {
    let metrics = run(BESIDE_LARGE);
    let small = |variant: &str| metrics[variant]["stream_5_s"];
    // The small stream waits for all others, or for four packets of each.
    for variant in ["fifo", "wrr"] {
        let seconds = small(variant);
        assert!((0.40..0.60).contains(&seconds), "{variant}: {seconds}");
    }
    let most = 0.04 + 24.0 * PACKET_S;
    assert!(small("scattered") < most, "{}", small("scattered"));
    assert!(small("rfc9218") < small("scattered"), "{metrics:?}");
    for (variant, metrics) in &metrics {
        let each = (1..=5).map(|id| metrics[&format!("stream_{id}_s")]);
        let longest = each.clone().fold(0.0, f64::max);
        assert_eq!(metrics["streams_max_s"], longest, "{variant}");
        let mean = each.sum::<f64>() / 5.0;
        assert!((metrics["streams_mean_s"] - mean).abs() < 1e-12);
        let large = [3, 4].map(|id| metrics[&format!("stream_{id}_s")]);
        let mean = large.iter().sum::<f64>() / 2.0;
        assert!((metrics["streams_large_mean_s"] - mean).abs() < 1e-12);
        assert!(metrics["completion_s"] >= longest);
    }
}

#[test]
fn streams_wait_for_those_that_they_depend_on() {
    let text = r#"
title = "One for another"
link = "rate=10mbps, rtt=20ms, buffer=1MB"
stream_scheduler = "wrr"
[workload]
warm = true
streams = [
    { id = 1, size = "200kB", weight = 16 },
    { id = 2, size = "200kB", weight = 16 },
]
[variant.siblings]
[variant.child]
workload.streams.2.parent = 1
"#;
    let metrics = run(text);
    let first = |variant: &str| metrics[variant]["stream_1_s"];
    let second = |variant: &str| metrics[variant]["stream_2_s"];
    assert!(first("child") < 0.25, "{metrics:?}");
    assert!(first("siblings") > 0.3, "they share the rate: {metrics:?}");
    assert!((second("child") - second("siblings")).abs() < 0.02);
}

#[test]
fn streams_begin_after_others_or_at_a_time() {
    let text = r#"
title = "One after another"
link = "rate=10mbps, rtt=20ms, buffer=1MB"
[workload]
streams = [
    { id = 3, size = "10kB", after = 2, start = "50ms" },
    { id = 1, size = "10kB", start = "500ms" },
    { id = 2, size = "10kB", after = 1 },
    { id = 4, size = "10kB" },
]
"#;
    let metrics = &run(text)["base"];
    for id in 1..=4 {
        let seconds = metrics[&format!("stream_{id}_s")];
        assert!((0.028..0.045).contains(&seconds), "{id}: {seconds}");
    }
    let completion = metrics["completion_s"];
    assert!((0.65..0.75).contains(&completion), "{completion}");
}

/// The streams that had ended when the small one did, in each of several repeats.
#[test]
fn shuffled_streams_are_requested_in_another_order_in_each_repeat() {
    let text = BESIDE_LARGE.replace("warm = true", "warm = true\nshuffled = true");
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap();
    let fifo = &experiment.cells[0];
    let times = (0..8).map(|seed| {
        let job = Job { seed, ..job(fifo) };
        let metrics = Simulator.run(&job).unwrap().metrics;
        (metrics["stream_5_s"] / 0.11) as u32
    });
    let places: std::collections::BTreeSet<u32> = times.collect();
    assert!(places.len() > 2, "{places:?}");
}

#[test]
fn the_last_byte_of_a_stream_arrives_no_later_than_its_end() {
    for (variant, metrics) in run(BESIDE_LARGE) {
        for id in 1..=5 {
            let last_byte = metrics[&format!("stream_{id}_last_byte_s")];
            let end = metrics[&format!("stream_{id}_s")];
            assert!(
                0.0 < last_byte && last_byte <= end,
                "{variant}: {metrics:?}"
            );
        }
        assert!(metrics["last_byte_s"] <= metrics["completion_s"]);
        assert!(metrics["streams_large_last_byte_mean_s"] > 0.0);
        let latest = metrics["streams_last_byte_max_s"];
        assert!((metrics["last_byte_s"] - latest).abs() < 1e-9, "{variant}");
    }
}

#[test]
fn streams_share_a_connection_though_each_has_little_credit() {
    let metrics = run(r#"
title = "Little credit"
link = "rate=1gbps, rtt=100ms"
initial_window = 1000
stream_receive_window = "16kB"
max_stream_receive_window = "16kB"
[workload]
warm = true
streams = [{ id = 1, size = "60kB" }, { id = 2, size = "60kB" }, { id = 3, size = "60kB" }]
"#);
    let metrics = metrics.values().next().unwrap();
    let one = metrics["stream_1_s"];
    assert!(metrics["completion_s"] < 1.2 * one, "{metrics:?}");
}
