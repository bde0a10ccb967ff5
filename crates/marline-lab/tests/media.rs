//! Videos, calls, uploads and background traffic with metrics, in the simulator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod medians;

use self::medians::medians;

fn on(link: &str, rest: &str) -> String {
    format!("title = \"t\"\nrepeats = 3\nlink = \"{link}\"\n{rest}\n")
}

#[test]
fn a_video_has_the_bit_rate_that_the_link_allows() {
    let video = |link, choice: &str| {
        let video = format!(
            "workload.video = {{ ladder = [\"1mbps\", \"2mbps\", \"4mbps\"], length = \"120s\", choice = \"{choice}\" }}"
        );
        medians(&on(link, &video))
    };
    for choice in ["buffer", "throughput"] {
        let fast = video("rate=20mbps, rtt=30ms", choice);
        assert!(fast["video_bitrate_mbps"] > 2.0, "{choice}: {fast:?}");
        assert_eq!(fast["video_stalls"], 0.0, "{choice}: {fast:?}");
        let slow = video("rate=1.5mbps, rtt=30ms", choice);
        assert!(slow["video_bitrate_mbps"] < 1.5, "{choice}: {slow:?}");
        // Less than the lowest bit rate: half of the time is spent waiting.
        let starved = video("rate=0.5mbps, rtt=30ms", choice);
        assert!(starved["video_stalled_s"] > 60.0, "{choice}: {starved:?}");
        assert!(starved["video_quality_mbps"] < slow["video_quality_mbps"]);
    }
}

#[test]
fn segments_and_objects_in_sequence_have_one_connection() {
    // A round trip for the handshake, and one for each of ten requests.
    let workloads = [
        "workload = { objects = [\"9kB\", \"9kB\", \"9kB\", \"9kB\", \"9kB\", \"9kB\", \"9kB\", \"9kB\", \"9kB\", \"9kB\"], order = \"in-sequence\" }",
        "workload.video = { ladder = [\"72kbps\"], segment = \"1s\", length = \"10s\" }",
    ];
    for workload in workloads {
        let seconds = medians(&on("rate=100mbps, rtt=100ms", workload))["completion_s"];
        assert!((1.1..1.3).contains(&seconds), "{workload}: {seconds} s");
    }
}

#[test]
fn lost_parts_of_a_call_are_lost_in_datagrams_and_late_in_streams() {
    let call = |over: &str, direction: &str| {
        let call = format!(
            "workload.call = {{ rate = \"1mbps\", length = \"20s\", deadline = \"50ms\", over = \"{over}\", direction = \"{direction}\" }}"
        );
        medians(&on("rate=20mbps, rtt=60ms, loss=2%", &call))
    };
    for direction in ["up", "down"] {
        let datagrams = call("datagrams", direction);
        assert_eq!(datagrams["call_frames"], 600.0);
        // Four packets in a frame: 1 - 0.98^4 = 8 %.
        assert!(
            (0.04..0.14).contains(&datagrams["call_lost_ratio"]),
            "{datagrams:?}"
        );
        assert!(
            (30.0..35.0).contains(&datagrams["call_delay_median_ms"]),
            "{datagrams:?}"
        );
        let streams = call("streams", direction);
        assert!(streams["call_lost_ratio"] < 0.01, "{streams:?}");
        // A retransmission takes a round trip more.
        assert!(
            (0.04..0.2).contains(&streams["call_late_ratio"]),
            "{streams:?}"
        );
    }
}

#[test]
fn uploads_are_measured_and_background_traffic_has_metrics() {
    let measure = on(
        "up.rate=5mbps, down.rate=20mbps, rtt=30ms, buffer=100ms",
        "workload.measure = { after = \"2s\", until = \"12s\", direction = \"up\" }\n\
         [[background]]\nkind = \"poisson\"\nrate = \"2mbps\"\nmetrics = true\n",
    );
    let metrics = medians(&measure);
    assert!((4.0..5.0).contains(&metrics["goodput_mbps"]), "{metrics:?}");
    // Payload of 1,200 bytes in packets of 1,228.
    let background = metrics["background_1_mbps"];
    assert!((1.7..2.2).contains(&background), "{metrics:?}");
}
