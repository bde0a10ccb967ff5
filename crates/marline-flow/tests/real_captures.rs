//! The beginnings of real connections of marline's client and server, and a datagram in each kind of tunnel, which are also seeds of a
//! fuzz target.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

use marline_flow::{Capture, Exporter, Finished, KeyLog, Options, Record, Sources};

fn seed(name: &str) -> PathBuf {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures");
    PathBuf::from(seeds).join(name)
}

fn export(mut capture: Capture<impl Read>, keys: Option<KeyLog>) -> Finished<Vec<Record>> {
    let sources = Sources {
        keys,
        server_log: None,
    };
    let mut exporter = Exporter::new(Options::default(), sources, Vec::new());
    while let Some(item) = capture.next().unwrap() {
        exporter.item(&item).unwrap();
    }
    exporter.finish().unwrap()
}

fn record(name: &str, keys: Option<KeyLog>) -> Record {
    let capture = Capture::open(&seed(name)).unwrap();
    let mut records = export(capture, keys).sink;
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[test]
fn each_kind_of_tunnel_is_opened() {
    let capture = Capture::open(&seed("tunnels")).unwrap();
    let finished = export(capture, None);
    let mut kinds: Vec<_> = finished
        .sink
        .iter()
        .map(|record| &*record.tunnel.as_ref().unwrap().kinds)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "ayiya", "capwap", "erspan", "etherip", "geneve", "gre", "gtpu", "ipip", "l2tp",
            "mpls", "nsh", "pppoe", "teredo", "vxlan"
        ]
    );
    let packets: u64 = finished
        .sink
        .iter()
        .map(|record| record.client.packets)
        .sum();
    assert_eq!(packets, finished.statistics.packets);
}

#[test]
fn a_key_log_opens_what_handshakes_hide() {
    for (name, open, opened) in [
        // It ends before the server confirms the handshake, which a key log shows earlier.
        ("quic", None, Some(("h3", "keylog"))),
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

/// Puts a Decryption Secrets Block after the first block of a capture in pcapng, which is little-endian.
fn with_key_log(capture: &[u8], key_log: &[u8]) -> Vec<u8> {
    let padded = key_log.len().next_multiple_of(4);
    let length = (20 + padded as u32).to_le_bytes();
    let section = u32::from_le_bytes(capture[4..8].try_into().unwrap()) as usize;
    let (section, rest) = capture.split_at(section);
    let mut file = section.to_vec();
    file.extend(10u32.to_le_bytes());
    file.extend(length);
    file.extend(0x544c_534b_u32.to_le_bytes());
    file.extend((key_log.len() as u32).to_le_bytes());
    file.extend(key_log);
    file.resize(section.len() + 16 + padded, 0);
    file.extend(length);
    file.extend(rest);
    file
}

#[test]
fn secrets_in_a_capture_open_what_handshakes_hide() {
    // The output of `editcap --inject-secrets` for `tls`.
    let finished = export(Capture::open(&seed("tls_secrets")).unwrap(), None);
    assert_eq!(finished.sink[0].http_version, Some("h2"));
    assert_eq!(finished.sink[0].label_source, Some("keylog"));
    let lines = finished.statistics.key_log_lines;
    assert_eq!((lines.read, lines.malformed), (5, 0));
}

#[test]
fn secrets_in_a_capture_are_used_beside_those_of_a_key_log() {
    let other = format!("SERVER_HANDSHAKE_TRAFFIC_SECRET {0} {0}", "01".repeat(32));
    let file = with_key_log(&fs::read(seed("tls")).unwrap(), other.as_bytes());
    let keys = KeyLog::read(&seed("keys.log")).unwrap();
    let finished = export(Capture::new(&file[..], "tls").unwrap(), Some(keys));
    assert_eq!(finished.sink[0].label_source, Some("keylog"));
    assert_eq!(finished.statistics.key_log_lines.read, 1);
}

#[test]
fn malformed_lines_of_a_key_log_in_a_capture_are_counted_and_the_others_used() {
    let keys = fs::read_to_string(seed("keys.log")).unwrap();
    let lines: Vec<_> = keys
        .lines()
        .map(|line| format!("{line}\nnot a secret\n"))
        .collect();
    let file = with_key_log(&fs::read(seed("tls")).unwrap(), lines.concat().as_bytes());
    let finished = export(Capture::new(&file[..], "tls").unwrap(), None);
    assert_eq!(finished.sink[0].label_source, Some("keylog"));
    let lines = finished.statistics.key_log_lines;
    assert_eq!((lines.read, lines.malformed), (20, 20));
    assert_eq!(finished.statistics.malformed.total(), 0);
}

#[test]
fn secrets_that_the_installed_editcap_injects_are_used() {
    let directory = tempfile::tempdir().unwrap();
    for (name, version) in [("quic", "h3"), ("quic_v2", "h3"), ("tls", "h2")] {
        let path = directory.path().join(name);
        let mut editcap = Command::new("editcap");
        let secrets = format!("tls,{}", seed("keys.log").display());
        editcap.arg("--inject-secrets").arg(secrets);
        let Ok(output) = editcap.arg(seed(name)).arg(&path).output() else {
            println!("skipped: editcap is not installed");
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let finished = export(Capture::open(&path).unwrap(), None);
        assert_eq!(finished.sink[0].http_version, Some(version));
        assert_eq!(finished.sink[0].label_source, Some("keylog"), "{name}");
        assert_eq!(finished.statistics.key_log_lines.malformed, 0);
    }
}
