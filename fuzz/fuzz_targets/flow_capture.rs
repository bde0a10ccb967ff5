//! Arbitrary captures, with the secrets of the connections in some seeds. Checks that nothing panics, that each packet is counted
//! once, that no more flows are kept than allowed, and that records are in order of time and have their values in bounds.
#![no_main]

use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use marline_flow::{Capture, Exporter, Item, KeyLog, Options, Sources, Timeouts};

/// The key log of the connections in the seeds.
const KEYS: &[u8] = include_bytes!("../../crates/marline-flow/tests/captures/keys.log");

const MAX_FLOWS: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Ok(mut capture) = Capture::new(input, "fuzz.pcap") else {
        return;
    };
    let mut keys = KeyLog::default();
    keys.add_from(BufReader::new(KEYS), "keys.log")
        .expect("a key log");
    let options = Options {
        max_flows: MAX_FLOWS,
        timeouts: Timeouts {
            active_ns: Some(60_000_000_000),
            ..Timeouts::default()
        },
    };
    let sources = Sources {
        keys: Some(keys),
        server_log: None,
    };
    let mut exporter = Exporter::new(options, sources, Vec::new());
    while let Ok(Some(item)) = capture.next() {
        if let Item::Packet(packet) = &item {
            assert!(packet.data.len() <= packet.length);
        }
        exporter.item(&item).expect("a vector takes everything");
        assert!(exporter.active_flows() <= MAX_FLOWS);
    }
    let finished = exporter.finish().expect("a vector takes everything");
    let (records, statistics) = (finished.sink, finished.statistics);
    let of_flows: u64 = records
        .iter()
        .map(|record| record.client.packets + record.server.packets)
        .sum();
    let elsewhere = statistics.skipped.total() + statistics.malformed.total();
    assert_eq!(of_flows + elsewhere, statistics.packets);
    for record in &records {
        assert!(record.start_ns <= record.end_ns);
        assert!(record.client.payload_bytes <= record.client.bytes);
        assert_eq!(record.http_version.is_some(), record.label_source.is_some());
        let texts = [&record.sni, &record.alpn_offered, &record.alpn_chosen];
        assert!(texts.into_iter().flatten().all(|text| text.is_ascii()));
    }
});
