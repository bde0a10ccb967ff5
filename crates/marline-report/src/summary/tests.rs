//! Small logs with statistics that can be verified by hand.

use serde_json::json;

use super::*;

fn summary(records: &[serde_json::Value]) -> Summary {
    let text: String = records
        .iter()
        .map(|record| format!("\u{1e}{record}\n"))
        .collect();
    let file = Path::new("x.sqlog");
    Summary::of(file, qlog::Events::new(text.as_bytes(), file)).unwrap()
}

fn event(time: u32, name: &str, data: serde_json::Value) -> serde_json::Value {
    let mut event = json!({ "time": time, "name": name, "tuple": "0" });
    event["data"] = data;
    event
}

fn packet(number: u64) -> serde_json::Value {
    json!({
        "header": { "packet_type": "1RTT", "packet_number": number },
        "raw": { "length": 1250 },
    })
}

fn small_log() -> Vec<serde_json::Value> {
    let mut lost = packet(1);
    lost["trigger"] = json!("time_threshold");
    let mut also_lost = packet(2);
    also_lost["trigger"] = json!("reordering_threshold");
    vec![
        json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "title": "small",
            "trace": {
                "common_fields": { "group_id": "c0ffee" },
                "vantage_point": { "name": "marline", "type": "server" },
            },
        }),
        event(
            0,
            "quic:congestion_state_updated",
            json!({ "new": "slow_start" }),
        ),
        event(0, "quic:packet_sent", packet(1)),
        event(0, "quic:packet_sent", packet(2)),
        event(
            100,
            "quic:recovery_metrics_updated",
            json!({
                "latest_rtt": 100, "congestion_window": 12_000, "bytes_in_flight": 2500,
            }),
        ),
        event(200, "quic:packet_lost", lost),
        event(200, "quic:packet_lost", also_lost),
        event(
            250,
            "quic:congestion_state_updated",
            json!({
                "old": "slow_start", "new": "recovery",
            }),
        ),
        event(
            250,
            "quic:recovery_metrics_updated",
            json!({
                "latest_rtt": 40.5, "congestion_window": 6000,
            }),
        ),
        event(
            300,
            "quic:packet_received",
            json!({
                "header": { "packet_type": "1RTT", "packet_number": 0 },
                "frames": [{ "frame_type": "ack", "acked_ranges": [[2]] }],
                "raw": { "length": 50 },
            }),
        ),
        event(
            300,
            "quic:packet_dropped",
            json!({ "trigger": "duplicate" }),
        ),
        event(1000, "quic:packet_sent", packet(3)),
        event(1000, "quic:packet_sent", packet(4)),
    ]
}

#[test]
fn a_small_log_is_summarized_as_text() {
    assert_eq!(
        summary(&small_log()).to_string(),
        "\
x.sqlog

connection c0ffee, server, marline, small
  duration        1 s
  sent            4 packets, 5 kB, 40 kbit/s
  received        1 packet, 50 B, 400 bit/s
  dropped         1 packet
  lost            2 packets (50.00 %): reordering_threshold 1, time_threshold 1
  spurious        1 packet
  rtt             min 40.5 ms, median 70.2 ms, max 100 ms (2 samples)
  max window      12 kB
  max in flight   2.5 kB
  time in         slow_start                250 ms   25.0 %
  time in         recovery                  750 ms   75.0 %
"
    );
}

#[test]
fn a_small_log_is_summarized_as_json() {
    let summary = summary(&small_log()).to_json();
    let mut connection = summary["connections"][0].clone();
    connection["paths"].take();
    assert_eq!(
        connection,
        json!({
            "id": "c0ffee", "title": "small", "name": "marline", "vantage_point": "server",
            "start_s": 0.0, "duration_s": 1.0,
            "packets_sent": 4, "bytes_sent": 5000, "throughput_sent_bps": 40_000.0,
            "packets_received": 1, "bytes_received": 50, "throughput_received_bps": 400.0,
            "packets_dropped": 1,
            "packets_lost": 2,
            "packets_lost_by_trigger": { "time_threshold": 1, "reordering_threshold": 1 },
            "spurious_losses": 1,
            "rtt_s": { "samples": 2, "min": 0.0405, "median": 0.07025, "max": 0.1 },
            "max_congestion_window": 12_000,
            "max_bytes_in_flight": 2500,
            "congestion_states": [
                { "state": "slow_start", "seconds": 0.25, "percent": 25.0 },
                { "state": "recovery", "seconds": 0.75, "percent": 75.0 },
            ],
            "paths": null,
            "bundles": [], "initial_windows": [], "careful_resume": [],
        })
    );
    assert_eq!(summary["connections"][0]["paths"][0]["id"], "0");
    assert_eq!(summary["skipped_records"], 0);
}

#[test]
fn paths_and_connections_are_distinguished() {
    let sent = |tuple: &str, group: &str| {
        json!({
            "time": 1, "name": "transport:packet_sent", "tuple": tuple, "group_id": group,
            "data": { "header": { "packet_type": "1RTT", "packet_size": 10 } },
        })
    };
    let summary = summary(&[
        sent("0", "a"),
        sent("1", "a"),
        sent("0", "b"),
        sent("1", "a"),
        json!("nonsense"),
    ]);
    assert_eq!(summary.skipped, 1);
    let counts: Vec<_> = summary
        .connections
        .iter()
        .map(|c| {
            let paths = c.paths.iter();
            let paths: Vec<_> = paths.map(|(t, n)| (&**t, n.packets_sent)).collect();
            (&*c.group, c.total.bytes_sent, paths)
        })
        .collect();
    assert_eq!(
        counts,
        [
            ("a", 30, vec![("0", 1), ("1", 2)]),
            ("b", 10, vec![("0", 1)]),
        ]
    );
    assert!(summary.to_string().contains("\n  path 1\n"));
}

#[test]
fn logged_spurious_losses_override_inferred_ones() {
    let mut log = small_log();
    log.push(event(1000, "marline:spurious_loss", packet(1)));
    log.push(event(1000, "marline:spurious_loss", packet(2)));
    assert_eq!(summary(&log).connections[0].total.spurious_losses, 2);
}

#[test]
fn a_file_without_events_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "\u{1e}{\n").unwrap();
    let error = Summary::read(file.path()).unwrap_err().to_string();
    assert!(error.ends_with("has no event of qlog: record 1: it ends within a value"));
}

#[test]
fn what_a_terminal_would_obey_is_escaped() {
    let evil = "\u{1b}]0;x\u{7}\nmarline: all is well";
    let mut records = small_log();
    records.push(event(2000, evil, json!({})));
    let mut state = json!({ "new": evil });
    state["trigger"] = evil.into();
    records.push(event(2000, "recovery:congestion_state_updated", state));
    let header = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": evil,
        "trace": { "vantage_point": { "type": evil, "name": evil },
                   "common_fields": { "group_id": evil } },
    });
    records.insert(0, header);
    let mut lost = packet(9);
    lost["trigger"] = evil.into();
    records.push(event(2500, "recovery:packet_lost", lost));
    let text = summary(&records).to_string();
    assert!(text.contains("\\u001b]0;x\\u0007\\u000amarline"), "{text}");
    let is_plain = |c: char| !c.is_control() || c == '\n';
    assert!(text.chars().all(is_plain), "{text:?}");
    assert!(!text.contains("\nmarline: all"), "{text}");
}

/// Large enough for a quadratic number of comparisons to be noticed.
const MANY: usize = 10_000;

#[test]
fn many_connections_paths_bundles_and_states_are_told_apart() {
    let mut records = Vec::new();
    for round in 0..2_u32 {
        for number in 0..MANY {
            let mut sent = event(round, "quic:packet_sent", packet(1));
            sent["group_id"] = json!(format!("connection {number}"));
            records.push(sent);
            let mut sent = event(round, "quic:packet_sent", packet(1));
            sent["tuple"] = json!(format!("path {number}"));
            records.push(sent);
            let state = json!({ "new": format!("state {number}") });
            records.push(event(round, "quic:congestion_state_updated", state));
            let window = json!({ "congestion_window": 1000 + number });
            let mut metrics = event(round, "quic:recovery_metrics_updated", window);
            metrics["tuple"] = json!(format!("path {number}"));
            records.push(metrics);
            let decision = json!({ "bundle": number, "action": "none" });
            records.push(event(round, "marline:bundle_updated", decision));
        }
    }
    let summary = summary(&records);
    assert_eq!(summary.connections.len(), MANY + 1);
    let unnamed = |connection: &&Connection| connection.group.is_empty();
    let other = summary.connections.iter().find(unnamed).unwrap();
    let named = summary.connections.iter().filter(|one| !unnamed(one));
    assert!(named.clone().all(|one| one.total.packets_sent == 2));
    let groups: Vec<_> = named.map(|one| one.group.clone()).collect();
    assert_eq!(groups[MANY - 1], format!("connection {}", MANY - 1));
    // The path `0` has the states.
    assert_eq!(other.paths.len(), MANY + 1);
    assert_eq!(other.bundles.len(), MANY);
    let states = other.paths.iter().find(|(name, _)| name == "0");
    assert_eq!(states.unwrap().1.states.len(), MANY);
    let histories = BundleHistory::all([&summary]);
    assert_eq!(histories.len(), MANY);
    assert_eq!(histories[7].bundle.decisions.len(), 2);
}
