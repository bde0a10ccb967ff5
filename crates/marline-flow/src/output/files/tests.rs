use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
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

/// An event of an export.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A datagram of a new flow.
    Packet,
    /// Time passes.
    Seconds(u64),
    Divide,
    /// The export ends, and the next one begins with the same name.
    Restart,
    /// It ends without completing its file, as if it were killed; records in that are lost.
    Drop,
}

fn event() -> impl Strategy<Value = (usize, Event)> {
    let event = prop_oneof![
        6 => Just(Event::Packet),
        3 => (1u64..200).prop_map(Event::Seconds),
        2 => Just(Event::Divide),
        1 => Just(Event::Restart),
        1 => Just(Event::Drop),
    ];
    (0usize..3, event)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn exports_of_one_name_lose_no_record(
        events in prop::collection::vec(event(), 1..60),
        size in prop::option::of(2_000u64..6_000),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.csv");
        let rotation = Rotation { size, ..MINUTES };
        let begin = || {
            let files = Files::create(&path, rotation, None).ok()?;
            Some(Exporter::new(Options::default(), Sources::default(), files))
        };
        let complete = || -> usize {
            let names = listing(&directory).into_keys();
            names.filter(|name| !name.ends_with("part")).map(|name| lines(&directory, &name)).sum()
        };
        // An export that cannot begin is tried again at its next event.
        let mut exports: [Option<Exporter<Files>>; 3] = [const { None }; 3];
        let (mut now_ns, mut number, mut lost) = (START, 0u16, 0);
        for (which, event) in events {
            if exports[which].is_none() {
                exports[which] = begin();
            }
            let Some(mut exporter) = exports[which].take() else {
                continue;
            };
            match event {
                Event::Packet => {
                    number += 1;
                    let from = address(&format!("10.0.0.1:{number}"));
                    let packet = udp(from, address("192.0.2.1:53"), b"query");
                    exporter.packet(&raw(now_ns, &packet)).unwrap();
                }
                Event::Seconds(seconds) => {
                    now_ns += seconds * SECOND;
                    exporter.advance(now_ns).unwrap();
                }
                Event::Divide => exporter.sink_mut().divide().unwrap(),
                Event::Restart => {
                    exporter.finish().unwrap().sink.finish().unwrap();
                    continue;
                }
                Event::Drop => {
                    let written = exporter.statistics().records as usize;
                    let under_way = exporter.active_flows();
                    let in_files = written_records(&exporter);
                    lost += under_way + written - in_files;
                    drop(exporter);
                    continue;
                }
            }
            exports[which] = Some(exporter);
        }
        for exporter in exports.into_iter().flatten() {
            exporter.finish().unwrap().sink.finish().unwrap();
        }
        prop_assert_eq!(complete() + lost, usize::from(number));
        let all = listing(&directory);
        prop_assert!(all.keys().all(|name| name.ends_with(".csv") && !name.starts_with('.')), "{:?}", all);
    }
}

/// Records in the files that are complete.
fn written_records(exporter: &Exporter<Files>) -> usize {
    let open = exporter
        .sink()
        .current
        .as_ref()
        .map_or(0, OutputFile::records);
    exporter.statistics().records as usize - open as usize
}
