//! A log with an initial window and a jump that is followed by a retreat.

use std::path::Path;

use serde_json::{Value, json};

use crate::qlog;
use crate::summary::Summary;

fn summary(events: &[Value]) -> Summary {
    let header = json!({ "file_schema": "urn:ietf:params:qlog:file:sequential", "trace": {} });
    let text: String = [&header]
        .into_iter()
        .chain(events)
        .map(|record| format!("\u{1e}{record}\n"))
        .collect();
    let file = Path::new("x.sqlog");
    Summary::of(file, qlog::Events::new(text.as_bytes(), file)).unwrap()
}

fn began(time: f64, window: u64, learnt: bool) -> Value {
    json!({
        "time": time, "name": "marline:initial_window_chosen",
        "data": { "window": window, "default": 12_000, "learnt": learnt },
    })
}

fn window(time: f64, window: u64) -> Value {
    json!({
        "time": time, "name": "quic:recovery_metrics_updated", "data": { "congestion_window": window },
    })
}

fn phase(time: f64, old: Option<&str>, new: &str, trigger: Option<&str>, window: u64) -> Value {
    let mut data = json!({
        "new": new, "state_data": { "pipesize": 24_000, "congestion_window": window },
    });
    if let Some(old) = old {
        data["old"] = json!(old);
    }
    if let Some(trigger) = trigger {
        data["trigger"] = json!(trigger);
    }
    if old.is_none_or(|old| old == "reconnaissance") {
        data["restored_data"] = json!({ "saved_congestion_window": 1_200_000, "saved_rtt": 40.0 });
    }
    json!({ "time": time, "name": "recovery:careful_resume_phase_updated", "data": data })
}

fn retreat() -> Vec<Value> {
    vec![
        began(1000.0, 12_000, false),
        phase(1000.0, None, "reconnaissance", None, 12_000),
        window(1040.0, 24_000),
        phase(
            1041.0,
            Some("reconnaissance"),
            "unvalidated",
            Some("congestion_window_limited"),
            600_000,
        ),
        phase(
            1081.0,
            Some("unvalidated"),
            "safe_retreat",
            Some("packet_loss"),
            12_000,
        ),
        phase(
            1121.0,
            Some("safe_retreat"),
            "normal",
            Some("exit_recovery"),
            12_000,
        ),
    ]
}

#[test]
fn the_summary_shows_whether_the_initial_window_is_from_history() {
    let text = summary(&[began(0.0, 240_000, true)]).to_string();
    let line = "\n  initial window  240 kB, from history; 12 kB by default\n";
    assert!(text.contains(line), "{text}");
    let text = summary(&[began(0.0, 12_000, false)]).to_string();
    assert!(
        text.contains("\n  initial window  12 kB, the default\n"),
        "{text}"
    );
}

#[test]
fn the_summary_names_the_paths_of_further_initial_windows() {
    let mut other = began(0.5, 12_000, false);
    other["tuple"] = json!("1");
    let text = summary(&[began(0.0, 12_000, false), other]).to_string();
    let lines =
        "\n  initial window  12 kB, the default\n  initial window  12 kB, the default, on path 1\n";
    assert!(text.contains(lines), "{text}");
}

#[test]
fn the_summary_shows_windows_before_and_after_each_phase() {
    let text = summary(&retreat()).to_string();
    let expected = "
  initial window  12 kB, the default
  careful resume  reconnaissance after 0 s, window 12 kB, saved 1.2 MB with rtt 40 ms
  careful resume  unvalidated after 41 ms, congestion_window_limited, window 24 kB \u{2192} 600 kB
  careful resume  safe_retreat after 81 ms, packet_loss, window 600 kB \u{2192} 12 kB
  careful resume  normal after 121 ms, exit_recovery, window 12 kB
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn json_contains_initial_windows_and_phases() {
    let summary = summary(&retreat()).to_json();
    let connection = &summary["connections"][0];
    assert_eq!(
        connection["initial_windows"],
        json!([{ "time_s": 1.0, "path": "", "window": 12_000, "default": 12_000, "learnt": false }])
    );
    let jump = &connection["careful_resume"][1];
    assert_eq!(
        *jump,
        json!({
            "time_s": 1.041, "path": "", "old": "reconnaissance", "new": "unvalidated",
            "trigger": "congestion_window_limited", "window_before": 24_000, "window": 600_000,
            "pipe_size": 24_000, "saved_window": 1_200_000, "saved_rtt_s": 0.04,
        })
    );
    assert_eq!(connection["careful_resume"].as_array().unwrap().len(), 4);
}

#[test]
fn missing_fields_are_omitted() {
    let event = json!({
        "time": 5, "name": "recovery:careful_resume_phase_updated",
        "data": { "new": "reconnaissance" },
    });
    let broken = json!({ "time": 5, "name": "marline:initial_window_chosen", "data": {} });
    let text = summary(&[event, broken]).to_string();
    assert!(
        text.contains("\n  careful resume  reconnaissance after 0 s\n"),
        "{text}"
    );
    assert!(!text.contains("initial window"), "{text}");
}
