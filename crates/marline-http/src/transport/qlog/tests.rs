use std::fs;

use marline::ConnectionId;

use super::*;

const SMALL: QlogLimits = QlogLimits {
    open_files: 2,
    files: 3,
    bytes: 1 << 20,
};

/// A log without its observer: the header is written when it is dropped.
fn log(directory: &Path, budget: &Arc<Budget>, is_permitted: bool) -> QlogWriter<LogFile> {
    let start = Start::default();
    if is_permitted {
        start.permit();
    }
    log_to(directory, budget, start)
}

fn log_to(directory: &Path, budget: &Arc<Budget>, start: Start) -> QlogWriter<LogFile> {
    let id = ConnectionId::new(&[7; 8]).unwrap();
    let base = directory.join(id.to_string());
    let header = Header {
        title: "test",
        vantage_point: VantagePoint {
            name: "marline",
            side: Side::Server,
        },
        original_destination_connection_id: id,
        reference: Instant::EPOCH,
        wall_clock: None,
    };
    let file = LogFile::new(base, "server", Arc::clone(budget), start);
    QlogWriter::new(file, &header)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_connection_that_proves_nothing_has_no_file() {
    let directory = tempfile::tempdir().unwrap();
    drop(log(directory.path(), &Budget::new(SMALL), false));
    assert_eq!(files(directory.path()), [] as [PathBuf; 0]);
}

#[test]
fn two_connections_with_the_same_id_have_files_of_their_own_that_only_the_owner_reads() {
    let directory = tempfile::tempdir().unwrap();
    let budget = Budget::new(SMALL);
    drop(log(directory.path(), &budget, true));
    drop(log(directory.path(), &budget, true));
    let files = files(directory.path());
    assert_eq!(files.len(), 2);
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("0707070707070707_") && name.ends_with("_server.sqlog"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

#[test]
fn files_are_limited_in_number_and_the_limit_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let budget = Budget::new(SMALL);
    let mut open: Vec<_> = (0..3)
        .map(|_| log(directory.path(), &budget, true))
        .collect();
    open.iter_mut().for_each(QlogWriter::flush);
    assert_eq!(files(directory.path()).len(), 2, "open at once");
    assert!(budget.has_reported());
    drop(open);
    for _ in 0..3 {
        drop(log(directory.path(), &budget, true));
    }
    assert_eq!(files(directory.path()).len(), 3, "in all");
}

#[test]
fn bytes_are_limited() {
    let directory = tempfile::tempdir().unwrap();
    let budget = Budget::new(QlogLimits { bytes: 10, ..SMALL });
    drop(log(directory.path(), &budget, true));
    let size: u64 = files(directory.path())
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .sum();
    assert_eq!(size, 0);
    assert!(budget.has_reported());
}

#[test]
fn what_happens_before_the_proof_is_kept_up_to_a_limit() {
    use std::io::Write;
    let directory = tempfile::tempdir().unwrap();
    let start = Start::default();
    let base = directory.path().join("id");
    let mut file = LogFile::new(base, "server", Budget::new(SMALL), start.clone());
    for _ in 0..100 {
        file.write_all(&[b'a'; 1024]).unwrap();
    }
    start.permit();
    file.write_all(b"end").unwrap();
    let written = fs::read(&files(directory.path())[0]).unwrap();
    assert_eq!(written.len(), 64 * 1024 + 3);
    assert!(written.ends_with(b"aend"));
}

#[test]
fn limits_that_are_replaced_count_the_files_of_before() {
    let directory = tempfile::tempdir().unwrap();
    let budget = Budget::new(SMALL);
    let mut first = log(directory.path(), &budget, true);
    first.flush();
    budget.set_limits(QlogLimits {
        open_files: 1,
        ..SMALL
    });
    drop(log(directory.path(), &budget, true));
    assert_eq!(files(directory.path()).len(), 1);
    drop(first);
    drop(log(directory.path(), &budget, true));
    assert_eq!(files(directory.path()).len(), 2);
}

/// A log whose peer is not validated.
fn unproven(directory: &Path, budget: &Arc<Budget>) -> LogFile {
    let base = directory.join("id");
    LogFile::new(base, "server", Arc::clone(budget), Start::default())
}

#[test]
fn what_is_kept_before_the_proof_is_limited_over_all_connections() {
    use std::io::Write;
    let directory = tempfile::tempdir().unwrap();
    let budget = Budget::new(SMALL);
    let record = [b'a'; 1024];
    let mut logs = Vec::new();
    loop {
        let mut log = unproven(directory.path(), &budget);
        if log.write_all(&record).is_err() {
            break;
        }
        logs.push(log);
        assert!(logs.len() < 1_000_000, "there is no limit");
    }
    assert_eq!(budget.held(), logs.len() as u64 * 1024);
    // Further records are dropped, and a log that cannot begin has no file.
    logs[0].write_all(&record).unwrap();
    assert_eq!(budget.held(), logs.len() as u64 * 1024);
    let mut late = unproven(directory.path(), &budget);
    assert!(late.write_all(&record).is_err());
    drop(late);
    assert_eq!(files(directory.path()), [] as [PathBuf; 0]);
    // Logs whose connection has ended, or that have a file, no longer count.
    logs.truncate(1);
    assert_eq!(budget.held(), 1024);
    drop(logs);
    assert_eq!(budget.held(), 0);
}

#[test]
fn what_is_kept_counts_until_it_is_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let budget = Budget::new(SMALL);
    let start = Start::default();
    let mut log = ConnectionLog {
        writer: log_to(directory.path(), &budget, start.clone()),
        start,
    };
    let state = |new| Event::ConnectionStateUpdated(ConnectionStateUpdated { old: None, new });
    log.on_event(Instant::EPOCH, &state(ConnectionState::Attempted));
    assert!(budget.held() > 100, "with its header");
    log.on_event(Instant::EPOCH, &state(ConnectionState::HandshakeComplete));
    log.writer.flush();
    assert_eq!(budget.held(), 0);
    assert_eq!(files(directory.path()).len(), 1);
}
