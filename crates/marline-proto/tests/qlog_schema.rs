//! Tests of the check of logs against their schema.

mod schema;

use serde_json::{Value, json};

fn header() -> Value {
    json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "trace": {
            "vantage_point": { "type": "client" },
            "event_schemas": [
                "urn:ietf:params:qlog:events:quic-13",
                "https://github.com/marline/marline/112026/qlog/marline",
            ],
        },
    })
}

/// The faults of a log of these records.
fn faults(records: &[Value]) -> String {
    let log: String = (records.iter())
        .map(|record| format!("\u{1e}{record}\n"))
        .collect();
    schema::faults(log.as_bytes()).join("\n")
}

fn faults_of(name: &str, data: &Value) -> String {
    let event = json!({ "time": 1.0, "name": name, "data": data });
    faults(&[header(), event])
}

fn faults_of_frame(frame: &Value) -> String {
    let data =
        json!({ "header": { "packet_type": "1RTT" }, "frames": [{ "frame_type": "ping" }, frame] });
    faults_of("quic:packet_sent", &data)
}

#[test]
fn valid_events_have_no_faults() {
    for frame in [
        json!({ "frame_type": "ack", "ack_delay": 1.5, "acked_ranges": [[1, 2], [4]] }),
        json!({ "frame_type": "path_challenge", "data": "00ff" }),
        json!({ "frame_type": "connection_close", "error": "crypto_error_0x12a" }),
        json!({ "frame_type": "path_ack", "path_id": 1, "ack_delay": 0.0, "acked_ranges": [[1]] }),
    ] {
        assert_eq!(faults_of_frame(&frame), "");
    }
    let reassembly = json!({ "out_of_order_bytes": 5 });
    assert_eq!(faults_of("marline:reassembly_updated", &reassembly), "");
}

#[test]
fn values_of_another_type_are_faults() {
    for (data, fault) in [
        (
            json!({ "header": { "packet_type": "1RTT", "packet_number": "7" } }),
            "header.packet_number: \"7\" is not a uint",
        ),
        (
            json!({ "header": { "packet_type": "1RTT", "packet_number": -1 } }),
            "header.packet_number: -1 is not a uint",
        ),
        (
            json!({ "header": { "packet_type": "1RTT", "packet_number_length": 256 } }),
            "header.packet_number_length: 256 has not 1 bytes",
        ),
        (
            json!({ "header": { "packet_type": "1RTT" }, "is_mtu_probe_packet": 1 }),
            "is_mtu_probe_packet: 1 is not a bool",
        ),
        (json!({ "header": [] }), "header: [] is not an object"),
        (json!({}), "header: it is missing"),
    ] {
        let found = faults_of("quic:packet_sent", &data);
        assert!(found.starts_with(fault), "{found}");
    }
    let quoted = json!({ "time": "1.0", "name": "quic:packets_acked", "data": {} });
    let found = faults(&[header(), quoted]);
    assert!(
        found.starts_with("time: \"1.0\" is not a float64"),
        "{found}"
    );
}

#[test]
fn values_that_the_schema_does_not_list_are_faults() {
    let found = faults_of("quic:ecn_state_updated", &json!({ "new": "tested" }));
    assert!(found.starts_with("new: \"tested\" is not"), "{found}");
    let header = json!({ "header": { "packet_type": "2RTT" } });
    let found = faults_of("quic:packet_sent", &header);
    assert!(found.starts_with("header.packet_type: \"2RTT\""), "{found}");
    let data = json!({ "header": { "packet_type": "1RTT" }, "trigger": "boredom" });
    let found = faults_of("quic:packet_lost", &data);
    assert!(found.starts_with("trigger: \"boredom\" is not"), "{found}");
}

#[test]
fn faults_of_frames_are_found_in_the_frame() {
    for (frame, fault) in [
        (
            json!({ "frame_type": "strem", "stream_id": 4 }),
            "frames.1.frame_type: \"strem\" is not",
        ),
        (
            json!({ "frame_type": "stream", "stream_id": "4" }),
            "frames.1.stream_id: \"4\" is not a uint",
        ),
        (
            json!({ "frame_type": "ack", "ack_delay": 3 }),
            "frames.1.ack_delay: 3 is not a float32",
        ),
        (
            json!({ "frame_type": "ack", "acked_ranges": [[1, 2, 3]] }),
            "frames.1.acked_ranges.0: 3 elements",
        ),
        (
            json!({ "frame_type": "ack", "acked_ranges": [] }),
            "frames.1.acked_ranges: 0 elements",
        ),
        (
            json!({ "frame_type": "path_challenge", "data": "0g" }),
            "frames.1.data: \"0g\" does not match",
        ),
        (
            json!({ "frame_type": "connection_close", "error": "crypto_error_0x22a" }),
            "frames.1.error: \"crypto_error_0x22a\" ",
        ),
        (
            json!({ "frame_type": "path_ack", "path_id": -1, "ack_delay": 0.0, "acked_ranges": [[1]] }),
            "frames.1.path_id: -1 is not a uint",
        ),
    ] {
        let found = faults_of_frame(&frame);
        assert!(found.starts_with(fault), "{found}");
    }
}

#[test]
fn fields_and_events_that_no_schema_has_are_faults() {
    let data = json!({ "header": { "packet_type": "1RTT" }, "datagram_id": 4 });
    let found = faults_of("quic:packet_sent", &data);
    assert!(
        found.starts_with("datagram_id: the schema has no such field"),
        "{found}"
    );
    for name in [
        "quic:packet_sents",
        "transport:packet_sent",
        "quic:padding_frame",
        "packet",
    ] {
        let found = faults_of(name, &json!({}));
        let fault = format!("no schema has the event {name:?}");
        assert!(found.starts_with(&fault), "{found}");
    }
    let extra = json!({ "time": 1.0, "name": "quic:packets_acked", "data": {}, "mood": "good" });
    let found = faults(&[header(), extra]);
    assert!(
        found.starts_with("mood: the schema has no such field"),
        "{found}"
    );
}

#[test]
fn events_of_schemas_that_the_header_does_not_name_are_faults() {
    let mut header = header();
    header["trace"]["event_schemas"] = json!(["urn:ietf:params:qlog:events:quic-13"]);
    let event = json!({
        "time": 1.0, "name": "marline:reassembly_updated", "data": { "out_of_order_bytes": 5 },
    });
    let found = faults(&[header, event]);
    assert!(
        found.starts_with("the header has no schema of marline"),
        "{found}"
    );
}

#[test]
fn headers_are_checked() {
    for (key, value, fault) in [
        ("file_schema", json!(1), "file_schema: 1 is not a text"),
        (
            "trace",
            json!({ "event_schemas": [] }),
            "trace.event_schemas: 0 elements",
        ),
        (
            "trace",
            json!({ "event_schemas": ["x"], "vantage_point": { "type": "both" } }),
            "trace.vantage_point.type: \"both\" is not",
        ),
        (
            "qlog_version",
            json!("0.3"),
            "qlog_version: the schema has no such field",
        ),
    ] {
        let mut header = header();
        header[key] = value;
        let found = faults(&[header]);
        assert!(found.starts_with(fault), "{found}");
    }
}
