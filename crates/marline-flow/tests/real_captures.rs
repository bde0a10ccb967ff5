//! The beginnings of real connections of marline's client and server, which are also seeds of a fuzz target.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::path::PathBuf;

use marline_flow::{Capture, Exporter, KeyLog, Options, Record, Sources};

fn seed(name: &str) -> PathBuf {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures");
    PathBuf::from(seeds).join(name)
}

fn record(name: &str, keys: Option<KeyLog>) -> Record {
    let sources = Sources {
        keys,
        server_log: None,
    };
    let mut capture = Capture::open(&seed(name)).unwrap();
    let mut exporter = Exporter::new(Options::default(), sources, Vec::new());
    while let Some(packet) = capture.next().unwrap() {
        exporter.packet(&packet).unwrap();
    }
    let mut records = exporter.finish().unwrap().sink;
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[test]
fn a_key_log_opens_what_handshakes_hide() {
    for (name, open, opened) in [
        ("quic", Some(("h3", "handshake")), Some(("h3", "keylog"))),
        ("quic_v2", Some(("h3", "handshake")), Some(("h3", "keylog"))),
        ("tls", None, Some(("h2", "keylog"))),
        (
            "cleartext",
            Some(("h1", "handshake")),
            Some(("h1", "handshake")),
        ),
    ] {
        let keys = KeyLog::read(&seed("keys.log")).unwrap();
        for (keys, label) in [(None, open), (Some(keys), opened)] {
            let record = record(name, keys);
            let found = record.http_version.zip(record.label_source);
            assert_eq!(found, label, "{name}");
            let sni = (name != "cleartext").then_some("localhost");
            assert_eq!(record.sni.as_deref(), sni);
            assert_eq!(record.server.port, 4551);
        }
    }
}

#[test]
fn secrets_of_other_connections_open_nothing() {
    let mut keys = KeyLog::default();
    let line = format!(
        "SERVER_HANDSHAKE_TRAFFIC_SECRET {} {}\n",
        "01".repeat(32),
        "02".repeat(32)
    );
    keys.add_from(line.as_bytes(), "keys.log").unwrap();
    let record = record("tls", Some(keys));
    assert_eq!(record.http_version, None);
    assert_eq!(record.alpn_offered.as_deref(), Some("h2"));
}
