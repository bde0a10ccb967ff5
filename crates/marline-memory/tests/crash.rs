//! A process that is killed while it writes leaves a consistent file with all committed records.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{env, thread};

use marline_memory::FileStore;
use marline_proto::Instant;
use marline_proto::coordination::history::{Average, PathKey, PathScope, PathStore, StoreLimits};

/// Environment variables of the child process: its file, and the wall clock in seconds.
const FILE: &str = "MARLINE_MEMORY_CRASH_FILE";
const WALL: &str = "MARLINE_MEMORY_CRASH_WALL";

const UNIX: Duration = Duration::from_secs(1_800_000_000);
const MINUTE: Duration = Duration::from_secs(60);
const KEYS: u32 = 500;
const LIMITS: StoreLimits = StoreLimits {
    records: 200,
    lifetime: Duration::from_secs(1 << 30),
    of_one_network: 256,
};
const ROUNDS: u64 = 24;

fn open(path: &Path, wall: u64) -> FileStore {
    let unix_time = UNIX + Duration::from_secs(wall);
    FileStore::open(path, LIMITS, Instant::EPOCH, unix_time).unwrap()
}

fn key(number: u32) -> PathKey {
    let [.., site, host] = number.to_be_bytes();
    PathScope::default().key(SocketAddr::from(([10, site, host, 1], 443)), None)
}

fn samples(store: &FileStore, number: u32) -> Option<u64> {
    Some(store.recall(Instant::EPOCH, &key(number))?.samples)
}

/// Not a test on its own: the code of the child process that is killed.
#[test]
fn child() {
    let Some(path) = env::var_os(FILE) else {
        return;
    };
    let wall = env::var(WALL).unwrap().parse().unwrap();
    let store = open(path.as_ref(), wall);
    let mut out = std::io::stdout();
    let mut now = Instant::EPOCH;
    // Counts up in one record, which is never the oldest, and fills the file with others.
    for number in samples(&store, 0).unwrap_or_default().. {
        now += Duration::from_millis(1);
        for other in 0..20 {
            let other = 1 + (number as u32 * 20 + other) % KEYS;
            store.update(now, &key(other), &mut |record| {
                record.windows.add(Average::Window(32), 40_000);
            });
        }
        store.update(now, &key(0), &mut |record| record.samples += 1);
        if store.flush(MINUTE) {
            writeln!(out, "committed {}", number + 1).unwrap();
        }
    }
}

fn start(path: &Path, wall: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(FILE, path)
        .env(WALL, wall.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_process_leaves_a_consistent_file_with_all_committed_records() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let mut before = 0;
    for round in 0..ROUNDS {
        let mut child = start(&path, 2000 * round);
        let out = child.stdout.take().unwrap();
        let (begun, begins) = channel();
        let reader = thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            let committed = lines.filter_map(|line| line.rsplit_once("committed ")?.1.parse().ok());
            let report = |_: &u64| {
                // Nobody may wait for it.
                let _ = begun.send(());
            };
            committed.inspect(report).last()
        });
        // Some rounds end before the file exists, others within a transaction after the first.
        if round % 2 == 1 {
            begins.recv().unwrap();
        }
        thread::sleep(Duration::from_micros(round * round * 1300 % 400_000));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let committed: u64 = reader.join().unwrap().unwrap_or(before);

        let store = open(&path, 2000 * round + 1000);
        let after = samples(&store, 0).unwrap_or_default();
        assert!(
            after == committed || after == committed + 1,
            "{after} of {committed}"
        );
        let held = (0..=KEYS).filter(|number| samples(&store, *number).is_some());
        assert!(held.count() <= LIMITS.records);
        assert_eq!(store.statistics().errors, 0);
        before = after;
    }
    assert!(before > 5, "progress: {before}");
}
