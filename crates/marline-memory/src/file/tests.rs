use std::fs;
use std::net::SocketAddr;

use marline_proto::coordination::history::{Average, Capacity, PathScope};
use redb::{Database, TableDefinition};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const UNIX: Duration = Duration::from_secs(1_800_000_000);

fn limits(records: usize) -> StoreLimits {
    StoreLimits {
        records,
        ..StoreLimits::default()
    }
}

fn open(path: &Path) -> FileStore {
    open_at(path, UNIX)
}

fn open_at(path: &Path, unix_time: Duration) -> FileStore {
    FileStore::open(path, StoreLimits::default(), Instant::EPOCH, unix_time).unwrap()
}

fn key(number: u32) -> PathKey {
    let [_, network, site, host] = number.to_be_bytes();
    let peer = SocketAddr::from(([10 + network, site, host, 1], 443));
    PathScope::default().key(peer, Some("a.example"))
}

fn put(store: &FileStore, now: Instant, key: &PathKey, window: u64) {
    store.update(now, key, &mut |record| {
        record.windows.add(Average::Mean, window);
        record.samples += 1;
        record.capacity = Some(Capacity {
            window,
            rtt: SECOND / 10,
            at: now,
            model: None,
        });
    });
}

fn average(store: &FileStore, now: Instant, key: &PathKey) -> Option<f64> {
    store.recall(now, key)?.windows.average(Average::Mean)
}

fn held(store: &FileStore, now: Instant, numbers: std::ops::Range<u32>) -> usize {
    numbers
        .filter(|number| store.recall(now, &key(*number)).is_some())
        .count()
}

#[test]
fn records_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let now = Instant::EPOCH + MINUTE;
    let store = open(&path);
    put(&store, now, &key(1), 40_000);
    put(&store, now, &key(1), 60_000);
    put(&store, now, &key(2), 90_000);
    put(&store, now, &key(3), 30_000);
    store.forget(now, &key(3));
    assert!(store.flush(MINUTE));
    assert_eq!(store.statistics().writes, 3);
    store.forget(now, &key(2));
    drop(store);

    let store = open_at(&path, UNIX + 2 * MINUTE);
    assert_eq!(average(&store, Instant::EPOCH, &key(1)), Some(50_000.0));
    let capacity = store.recall(Instant::EPOCH, &key(1)).unwrap().capacity;
    assert_eq!(capacity.unwrap().window, 60_000);
    assert_eq!(held(&store, Instant::EPOCH, 2..4), 0);
    let statistics = store.statistics();
    assert_eq!(
        (statistics.records, statistics.fetched, statistics.errors),
        (1, 1, 0)
    );
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn records_age_while_no_process_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let written = Instant::EPOCH + 10 * MINUTE;
    // The wall clock when the next process starts, and the rest of the hour then.
    for (unix_time, left) in [
        (UNIX + 10 * MINUTE, 60 * MINUTE),
        (UNIX + 40 * MINUTE, 30 * MINUTE),
        (UNIX - MINUTE, 60 * MINUTE),
        (Duration::ZERO, 60 * MINUTE),
        (UNIX + 70 * MINUTE, Duration::ZERO),
    ] {
        put(&open(&path), written, &key(1), 40_000);
        let store = open_at(&path, unix_time);
        if let Some(last) = left.checked_sub(SECOND) {
            let last = Instant::EPOCH + last;
            assert_eq!(average(&store, last, &key(1)), Some(40_000.0));
        }
        assert_eq!(average(&store, Instant::EPOCH + left, &key(1)), None);
        drop(store);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn records_keep_aging_after_the_clock_went_backwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    put(&open(&path), Instant::EPOCH, &key(1), 40_000);
    // Half an hour without changes, with the clock a day back.
    let day_before = UNIX - 1440 * MINUTE;
    let store = open_at(&path, day_before);
    assert_eq!(held(&store, Instant::EPOCH + 30 * MINUTE, 1..2), 1);
    drop(store);
    let store = open_at(&path, day_before + 50 * MINUTE);
    assert_eq!(held(&store, Instant::EPOCH + 9 * MINUTE, 1..2), 1);
    assert_eq!(held(&store, Instant::EPOCH + 10 * MINUTE, 1..2), 0);
}

#[test]
fn the_limits_apply_to_larger_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let at = |number: u32| Instant::EPOCH + number * SECOND;
    let store = open(&path);
    for number in 0..300 {
        put(&store, at(number), &key(number << 8), 40_000);
    }
    drop(store);
    let store = FileStore::open(&path, limits(100), Instant::EPOCH, UNIX).unwrap();
    assert_eq!(store.statistics().records, 100);
    let kept = (0..300).filter(|number| store.recall(at(0), &key(number << 8)).is_some());
    assert_eq!(
        kept.collect::<Vec<_>>(),
        (200..300).collect::<Vec<_>>(),
        "the latest"
    );
    put(&store, at(301), &key(301 << 8), 40_000);
    drop(store);

    let store = open(&path);
    assert_eq!(
        store.statistics().records,
        100,
        "evicted records were removed from the file"
    );
    assert_eq!(average(&store, at(0), &key(301 << 8)), Some(40_000.0));
}

#[test]
fn changes_beyond_the_queue_limit_are_all_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let store = open(&path);
    let many = MAX_CHANGES as u32 + 2000;
    put(&store, Instant::EPOCH, &key(many), 40_000);
    assert!(store.flush(MINUTE));
    store
        .shared
        .work
        .with(|changes| changes.keys = Backlog::new(10));
    store.forget(Instant::EPOCH, &key(many));
    for number in 0..many {
        put(&store, Instant::EPOCH, &key(number), 40_000);
    }
    drop(store);
    let store = open(&path);
    assert_eq!(held(&store, Instant::EPOCH, 0..many), many as usize);
    assert_eq!(held(&store, Instant::EPOCH, many..many + 1), 0);
}

#[test]
fn the_file_size_is_bounded_under_many_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let store = FileStore::open(&path, limits(1000), Instant::EPOCH, UNIX).unwrap();
    for round in 0..10 {
        let now = Instant::EPOCH + round * SECOND;
        for number in 0..3000 {
            put(&store, now, &key((round * 3000 + number) << 8), 40_000);
        }
        assert!(store.flush(MINUTE));
    }
    assert_eq!(store.statistics().records, 1000);
    let length = fs::metadata(&path).unwrap().len();
    assert!(length < 8 << 20, "{length}");
}

#[test]
fn concurrent_updates_are_all_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let store = open(&path);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..500 {
                    store.update(Instant::EPOCH, &key(number % 20), &mut |record| {
                        record.samples += 1;
                    });
                    if number % 100 == thread {
                        assert!(store.flush(MINUTE));
                    }
                }
            });
        }
    });
    drop(store);
    let store = open(&path);
    for number in 0..20 {
        assert_eq!(
            store.recall(Instant::EPOCH, &key(number)).unwrap().samples,
            100
        );
    }
}

#[test]
fn opening_a_file_in_use_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let store = open(&path);
    let second = FileStore::open(&path, limits(9), Instant::EPOCH, UNIX);
    let error = second.unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("paths.redb is in use by another process")
    );
    drop(store);
    open(&path);
}

/// The error of opening the file, which must not be modified.
fn refused(path: &Path) -> OpenError {
    let before = fs::read(path).unwrap();
    let error = FileStore::open(path, limits(9), Instant::EPOCH, UNIX).unwrap_err();
    assert!(error.to_string().contains("paths.redb"), "{error}");
    let after = fs::read(path).unwrap();
    assert_eq!(before.len(), after.len());
    error
}

#[test]
fn files_of_unknown_format_are_rejected_and_not_modified() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    for content in [&b""[..], b"redb", b"[bundle]\nfair = true\n", &[0; 9000]] {
        fs::write(&path, content).unwrap();
        assert!(matches!(refused(&path), OpenError::UnknownFormat { .. }));
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    fs::remove_file(&path).unwrap();
    drop(Database::create(&path).unwrap());
    assert!(matches!(refused(&path), OpenError::UnknownFormat { .. }));
}

#[test]
fn a_newer_format_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    drop(open(&path));
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let about = TableDefinition::<&str, u64>::new("marline");
    transaction
        .open_table(about)
        .unwrap()
        .insert("format", 2)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&path);
    assert!(
        matches!(error, OpenError::Newer { format: 2, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("update"));
}

#[test]
fn an_io_error_names_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nowhere/paths.redb");
    let error = FileStore::open(path, limits(9), Instant::EPOCH, UNIX).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }));
    assert!(error.to_string().contains("nowhere/paths.redb"), "{error}");
}

#[test]
fn malformed_records_are_skipped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    put(&open(&path), Instant::EPOCH, &key(1), 40_000);
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let paths = TableDefinition::<&[u8], &[u8]>::new("paths");
    {
        let mut table = transaction.open_table(paths).unwrap();
        table.insert(&b"1/any"[..], &b"no record"[..]).unwrap();
        table.insert(&b"\xff"[..], &b""[..]).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let store = open(&path);
    assert_eq!(held(&store, Instant::EPOCH, 0..3), 1);
    assert_eq!(store.statistics().errors, 2);
}

#[test]
fn a_corrupted_file_opens_or_reports_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paths.redb");
    let store = open(&path);
    for number in 0..200 {
        put(&store, Instant::EPOCH, &key(number << 8), 40_000);
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    let mut damaged = 0;
    let mut random = 1_u64;
    for round in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 20 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Among the used pages, and more often in the first of them.
            let at = (random >> 33) as usize % if round % 3 == 0 { 512 } else { 64 << 10 };
            bytes[at] = (random >> 56) as u8;
        }
        if round % 10 == 9 {
            bytes.truncate((random >> 33) as usize % whole.len());
        }
        fs::write(&path, &bytes).unwrap();
        match FileStore::open(&path, limits(300), Instant::EPOCH, UNIX) {
            Ok(store) => assert!(store.statistics().records <= 200),
            Err(OpenError::UnknownFormat { .. } | OpenError::Damaged { .. }) => damaged += 1,
            Err(OpenError::Io { .. }) => damaged += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(path.exists());
    }
    assert!(damaged > 10, "{damaged}");
}

#[cfg(unix)]
#[test]
fn what_is_not_a_regular_file_is_refused_without_waiting_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [pipe.as_path(), dir.path()] {
        let opened = FileStore::open(path, StoreLimits::default(), Instant::EPOCH, UNIX);
        let error = opened.unwrap_err();
        assert!(matches!(error, OpenError::NotAFile { .. }), "{error}");
        assert!(error.to_string().contains("is not a regular file"));
    }
}
