//! The requirements of qvis on a file, by its loader (`FileLoader.ts`, `QlogLoaderV2.ts`), and the fields that its
//! diagrams read.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::qlog::Events;

fn document(log: &str) -> Result<Document, Error> {
    Document::of("a.sqlog", Events::new(log.as_bytes(), Path::new("a.sqlog")))
}

fn text(log: &str) -> String {
    let mut out = Vec::new();
    document(log).unwrap().write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json_of(log: &str) -> Value {
    serde_json::from_str(&text(log)).unwrap()
}

const HEADER: &str = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq",
"title":"a \"title\"","trace":{"common_fields":{"group_id":"ab","reference_time":{"clock_type":"monotonic",
"epoch":"unknown","wall_clock_time":"2026-03-30T22:55:53.572Z"}},"vantage_point":{"name":"marline","type":"server"},
"event_schemas":["urn:ietf:params:qlog:events:quic-13"]}}"#;

/// A log of these events, a record each.
fn log(events: &[Value]) -> String {
    let mut log = format!("\u{1e}{HEADER}\n");
    for event in events {
        log += &format!("\u{1e}{event}\n");
    }
    log
}

/// The only event of the document for a log with one.
fn event(name: &str, data: &Value) -> Value {
    let log = log(&[json!({ "time": 1.000001, "name": name, "data": data })]);
    json_of(&log)["traces"][0]["events"][0].clone()
}

#[test]
fn the_first_kilobyte_says_version_and_format() {
    let text = text(&log(&[
        json!({ "time": 1.0, "name": "quic:packet_sent", "data": {} }),
    ]));
    let head = &text[..100];
    // Any of these would be taken for another form.
    assert!(head.contains(r#""qlog_format":"JSON","#), "{head}");
    assert!(!head.contains("NDJSON") && !head.contains("JSON-SEQ"));
    assert!(head.contains("qlog_version"));
}

#[test]
fn a_trace_has_what_the_loader_requires() {
    let document = json_of(&log(&[
        json!({ "time": 1.000001, "name": "quic:packet_sent", "data": { "header": {} } }),
        json!({ "time": 2.5, "name": "marline:bundle_updated", "data": null }),
    ]));
    // The versions that it takes are draft-02, draft-02-RC1, qlog-03-WIP and 0.3.
    assert_eq!(
        document,
        json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON",
            "title": "a \"title\"",
            "traces": [{
                "title": "a \"title\"",
                "vantage_point": { "name": "marline", "type": "server" },
                "common_fields": {
                    "group_id": "ab",
                    "time_format": "relative",
                    "reference_time": "2026-03-30T22:55:53.572Z",
                },
                "events": [
                    { "time": 1.000001, "name": "transport:packet_sent", "data": { "header": {} } },
                    { "time": 2.5, "name": "marline:bundle_updated", "data": {} },
                ],
            }],
        })
    );
}

#[test]
fn a_log_in_virtual_time_begins_at_0() {
    let log = r#"{"time":1,"name":"quic:packet_sent","data":{}}"#;
    let trace = &json_of(log)["traces"][0];
    assert_eq!(trace["common_fields"]["reference_time"], 0);
    assert_eq!(trace["vantage_point"]["type"], "unknown");
}

#[test]
fn events_have_the_names_that_the_diagrams_look_for() {
    for (name, former) in [
        ("quic:packet_sent", "transport:packet_sent"),
        ("quic:packet_received", "transport:packet_received"),
        ("quic:parameters_set", "transport:parameters_set"),
        ("quic:udp_datagrams_sent", "transport:datagrams_sent"),
        ("quic:packet_lost", "recovery:packet_lost"),
        ("quic:recovery_metrics_updated", "recovery:metrics_updated"),
        ("quic:recovery_parameters_set", "recovery:parameters_set"),
        (
            "quic:congestion_state_updated",
            "recovery:congestion_state_updated",
        ),
        ("quic:timer_updated", "recovery:loss_timer_updated"),
        (
            "quic:connection_id_updated",
            "connectivity:connection_id_updated",
        ),
        (
            "quic:connection_state_updated",
            "connectivity:connection_state_updated",
        ),
        ("quic:key_updated", "security:key_updated"),
        ("http3:frame_parsed", "http:frame_parsed"),
        ("recovery:metrics_updated", "recovery:metrics_updated"),
        ("transport:packet_sent", "transport:packet_sent"),
    ] {
        assert_eq!(event(name, &json!({}))["name"], former);
    }
}

#[test]
fn frames_have_the_fields_that_the_diagrams_read() {
    let frames = json!([
        { "frame_type": "stream", "stream_id": 4, "offset": 0, "raw": { "length": 6 } },
        { "frame_type": "padding", "raw": { "payload_length": 5 } },
        { "frame_type": "ack", "acked_ranges": [[1, 2], [4]] },
        { "frame_type": "connection_close", "error": "no_error", "reason": "" },
        { "frame_type": "reset_stream", "stream_id": 4, "error": "unknown", "error_code": 7 },
        { "frame_type": "stop_sending", "stream_id": 4, "error": "unknown" },
        "no frame",
    ]);
    let sent = event("quic:packet_sent", &json!({ "frames": frames }));
    assert_eq!(
        sent["data"]["frames"],
        json!([
            { "frame_type": "stream", "stream_id": 4, "offset": 0, "raw": { "length": 6 }, "length": 6 },
            { "frame_type": "padding", "raw": { "payload_length": 5 }, "length": 5 },
            { "frame_type": "ack", "acked_ranges": [[1, 2], [4]] },
            { "frame_type": "connection_close", "error_code": "no_error", "reason": "" },
            { "frame_type": "reset_stream", "stream_id": 4, "error_code": 7 },
            { "frame_type": "stop_sending", "stream_id": 4, "error_code": "unknown" },
            "no frame",
        ])
    );
}

#[test]
fn parameters_have_an_owner() {
    let data = json!({ "initiator": "remote", "initial_max_data": 5 });
    let set = event("quic:parameters_set", &data);
    assert_eq!(
        set["data"],
        json!({ "owner": "remote", "initial_max_data": 5 })
    );
}

#[test]
fn each_connection_of_a_file_is_a_trace() {
    let sent = |time, group| json!({ "time": time, "name": "quic:packet_sent", "group_id": group, "data": {} });
    let document = json_of(&log(&[sent(1.0, "a"), sent(2.0, "b"), sent(3.0, "a")]));
    let traces = document["traces"].as_array().unwrap();
    let shape: Vec<_> = traces
        .iter()
        .map(|trace| {
            let group = trace["common_fields"]["group_id"].as_str().unwrap();
            (group, trace["events"].as_array().unwrap().len())
        })
        .collect();
    assert_eq!(shape, [("a", 2), ("b", 1)]);
    // qvis splits a trace whose first event has a group, and expects one in all others.
    assert!(traces[0]["events"][0].get("group_id").is_none());
}

#[test]
fn malformed_records_are_skipped_and_counted() {
    let log = log(&[
        json!({ "time": 1.0, "name": "quic:packet_sent", "data": {} }),
        json!({ "name": "quic:packet_sent" }),
        json!(7),
    ]);
    let document = document(&log).unwrap();
    assert_eq!(document.skipped(), 2);
    let reason = document.first_error().unwrap();
    assert_eq!(reason, "a.sqlog: record 3: it has no `time`");
}

#[test]
fn a_log_without_events_is_an_error() {
    for log in ["", HEADER.replace('\n', "").as_str(), "no log"] {
        let error = document(log).unwrap_err().to_string();
        assert!(
            error.starts_with("a.sqlog has no event of qlog: "),
            "{error}"
        );
    }
}

#[test]
fn what_is_converted_can_be_read_as_a_log() {
    let log = log(&[
        json!({ "time": 1.5, "name": "quic:recovery_metrics_updated", "data": { "smoothed_rtt": 20.0 } }),
    ]);
    let text = text(&log);
    let events: Vec<_> = Events::new(text.as_bytes(), Path::new("b.qlog"))
        .map(Result::unwrap)
        .collect();
    assert_eq!(events[0].kind(), "metrics_updated");
    assert_eq!(events[0].number(&["smoothed_rtt"]), Some(20.0));
    assert_eq!(events[0].time_s, 0.0015);
}
