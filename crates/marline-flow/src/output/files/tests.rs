use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use super::*;
use crate::testing::*;
use crate::{Exporter, Options, Sources};

const MINUTES: Rotation = Rotation {
    interval_ns: Some(60 * SECOND),
    size: None,
};

/// Files by name.
fn listing(directory: &TempDir) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let sizes = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        (name, entry.metadata().unwrap().len())
    });
    sizes.collect()
}

fn lines(directory: &TempDir, name: &str) -> usize {
    let text = fs::read_to_string(directory.path().join(name)).unwrap();
    text.lines().count() - 1
}

/// A datagram of a flow of its own each `pause_ns`.
fn export(path: &Path, rotation: Rotation, count: u16, pause_ns: u64) -> Exporter<Files> {
    let files = Files::create(path, rotation, None).unwrap();
    let mut exporter = Exporter::new(Options::default(), Sources::default(), files);
    for i in 0..count {
        let from = address(&format!("10.0.0.1:{}", 10_000 + i));
        let packet = udp(from, address("192.0.2.1:53"), b"query");
        let time_ns = START + u64::from(i) * pause_ns;
        exporter.packet(&raw(time_ns, &packet)).unwrap();
    }
    exporter
}

#[test]
fn files_are_completed_at_multiples_of_the_interval() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    // 20 s after a full minute, for 230 s.
    let exporter = export(&path, MINUTES, 24, 10 * SECOND);
    let names: Vec<_> = listing(&directory).into_keys().collect();
    assert_eq!(
        names,
        [
            ".flows.csv.part",
            "flows-20231114T221320Z.csv",
            "flows-20231114T221400Z.csv",
            "flows-20231114T221500Z.csv",
            "flows-20231114T221600Z.csv",
        ],
        "the one that is open has no final name"
    );
    let written = exporter.finish().unwrap().sink.finish().unwrap();
    let all = listing(&directory);
    assert!(!all.contains_key(".flows.csv.part"));
    assert_eq!(written.files, all.len() as u64);
    assert_eq!(written.bytes, all.values().sum::<u64>());
    let records: usize = all.keys().map(|name| lines(&directory, name)).sum();
    assert_eq!(records, 24);
}

#[test]
fn an_interval_without_packets_ends_by_the_clock_and_one_without_records_has_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    let mut exporter = export(&path, MINUTES, 1, 0);
    assert_eq!(listing(&directory).len(), 1);
    for second in 0..200 {
        exporter.advance(START + second * SECOND).unwrap();
    }
    // The datagram's record was due after ten seconds.
    let all = listing(&directory);
    assert_eq!(
        all.keys().collect::<Vec<_>>(),
        ["flows-20231114T221320Z.csv"]
    );
    exporter.finish().unwrap().sink.finish().unwrap();
    assert_eq!(listing(&directory), all);
}

#[test]
fn a_file_that_has_the_size_is_complete_in_every_format() {
    let names = ["flows.csv", "flows.ipfix", "flows.parquet"];
    let formats = if cfg!(feature = "parquet") { 3 } else { 2 };
    for name in &names[..formats] {
        let directory = tempfile::tempdir().unwrap();
        let rotation = Rotation {
            interval_ns: None,
            size: Some(100_000),
        };
        let path = directory.path().join(name);
        let exporter = export(&path, rotation, 3000, SECOND);
        exporter.finish().unwrap().sink.finish().unwrap();
        let sizes: Vec<_> = listing(&directory).into_values().collect();
        assert!(sizes.len() > 3, "{name}: {sizes:?}");
        // What is written before a file is complete has a buffer.
        assert!(
            sizes.iter().all(|size| *size <= 140_000),
            "{name}: {sizes:?}"
        );
    }
}

#[test]
fn files_that_begin_in_the_same_second_have_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    fs::write(
        directory.path().join("flows-20231114T221320Z.csv"),
        "former",
    )
    .unwrap();
    let rotation = Rotation {
        interval_ns: None,
        size: Some(1),
    };
    let exporter = export(&path, rotation, 2, 0);
    exporter.finish().unwrap().sink.finish().unwrap();
    let names: Vec<_> = listing(&directory).into_keys().collect();
    assert_eq!(
        names,
        [
            "flows-20231114T221320Z.csv",
            "flows-20231114T221320Z_2.csv",
            "flows-20231114T221320Z_3.csv",
        ]
    );
    let former = fs::read_to_string(directory.path().join("flows-20231114T221320Z.csv"));
    assert_eq!(former.unwrap(), "former");
}

#[test]
fn what_is_open_at_an_early_end_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    drop(export(&path, MINUTES, 12, 10 * SECOND));
    let names = listing(&directory);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names.keys().all(|name| name.ends_with("Z.csv")),
        "{names:?}"
    );
}

#[test]
fn files_are_divided_when_somebody_asks() {
    for rotation in [Rotation::default(), MINUTES] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.csv");
        let mut exporter = export(&path, rotation, 4, 11 * SECOND);
        let divided = |exporter: &mut Exporter<Files>| {
            exporter.sink_mut().divide().unwrap();
            let names = listing(&directory).into_keys();
            names.filter(|name| !name.ends_with("part")).count()
        };
        let before = divided(&mut exporter);
        assert_eq!(divided(&mut exporter), before, "no file without records");
        let written = exporter.finish().unwrap().sink.finish().unwrap();
        let all = listing(&directory);
        assert!(all.keys().all(|name| name.ends_with("Z.csv")), "{all:?}");
        assert_eq!((written.files, all.len()), (all.len() as u64, before + 1));
        let records: usize = all.keys().map(|name| lines(&directory, name)).sum();
        assert_eq!(records, 4);
    }
}

#[test]
fn two_that_write_files_of_one_name_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    let mut first = export(&path, MINUTES, 2, 0);
    assert!(matches!(
        Files::create(&path, MINUTES, None),
        Err(OutputError::Io { error, .. }) if error.to_string() == "another process writes it"
    ));
    // While the first one is between two files, another one begins.
    for seconds in [45, 101] {
        first.advance(START + seconds * SECOND).unwrap();
    }
    let mut second = export(&path, MINUTES, 3, 0);
    for i in 0..5u16 {
        for (exporter, port) in [(&mut first, 20_000), (&mut second, 30_000)] {
            let packet = udp(
                address(&format!("10.0.0.1:{}", port + i)),
                address("192.0.2.1:53"),
                b"query",
            );
            let time_ns = START + (110 + 25 * u64::from(i)) * SECOND;
            exporter.packet(&raw(time_ns, &packet)).unwrap();
        }
    }
    for exporter in [first, second] {
        exporter.finish().unwrap().sink.finish().unwrap();
    }
    let all = listing(&directory);
    assert!(
        all.keys()
            .all(|name| name.ends_with("Z.csv") || name.contains("Z_")),
        "{all:?}"
    );
    let records: usize = all.keys().map(|name| lines(&directory, name)).sum();
    assert_eq!(records, 2 + 3 + 10);
}

#[test]
fn a_file_that_was_left_by_a_killed_process_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    fs::write(directory.path().join(".flows.csv.part"), [b'x'; 10_000]).unwrap();
    let exporter = export(&path, Rotation::default(), 2, 0);
    exporter.finish().unwrap().sink.finish().unwrap();
    assert_eq!(listing(&directory).len(), 1);
    assert_eq!(lines(&directory, "flows.csv"), 2);
}
