use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use marline_proto::coordination::history::{Average, PathScope};

use super::*;

const UNIX: Duration = Duration::from_secs(1_800_000_000);
const MINUTE: Duration = Duration::from_secs(60);

fn connect(url: &str) -> SharedStore {
    let limits = StoreLimits::default();
    SharedStore::connect(url, "test", limits, Instant::EPOCH, UNIX).unwrap()
}

fn connect_to(listener: &TcpListener) -> SharedStore {
    connect(&format!("redis://{}", listener.local_addr().unwrap()))
}

fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn key(number: u32) -> PathKey {
    let [_, network, site, host] = number.to_be_bytes();
    let peer = SocketAddr::from(([10 + network, site, host, 1], 443));
    PathScope::default().key(peer, Some("a.example"))
}

fn put(store: &SharedStore, key: &PathKey, window: u64) {
    store.update(Instant::EPOCH, key, &mut |record| {
        record.windows.add(Average::Mean, window);
    });
}

/// Runs `connections` connections one after another. Each call must return long before the timeout of a
/// request, and records must be available.
fn keeps_working(store: SharedStore, connections: u32) -> SharedStore {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        for number in 0..connections {
            assert_eq!(store.recall(Instant::EPOCH, &key(number)), None);
            put(&store, &key(number), 40_000);
            assert!(store.recall(Instant::EPOCH, &key(number)).is_some());
        }
        done.send(store).unwrap();
    });
    is_done.recv_timeout(MINUTE).unwrap()
}

#[test]
fn a_server_that_never_answers_delays_no_call() {
    let listener = listen();
    let store = connect_to(&listener);
    // If each call waited for the timeout, a thousand would take more than an hour.
    let store = keeps_working(store, 1000);
    let _silent = listener.accept().unwrap();
    put(&store, &key(1000), 40_000);
    let statistics = store.statistics();
    assert_eq!((statistics.writes, statistics.fetched), (0, 0));
    assert_eq!((statistics.dropped_writes, statistics.records), (0, 1001));
    assert!(!store.flush(Duration::from_millis(10)));
}

#[test]
fn an_unreachable_server_delays_no_call_and_is_retried() {
    let listener = listen();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    drop(listener);
    let store = keeps_working(connect(&url), 1000);
    assert!(!store.flush(Duration::from_millis(500)));
    let statistics = store.statistics();
    assert!(statistics.errors > 0);
    assert!(statistics.errors < 10, "{statistics:?}: it backs off");
    assert_eq!((statistics.writes, statistics.dropped_writes), (0, 0));
}

#[test]
fn queues_are_bounded_and_discard_the_oldest() {
    let listener = listen();
    let store = connect_to(&listener);
    let many = MAX_CHANGES as u32 + 1000;
    let store = keeps_working(store, many);
    let dropped = store.statistics().dropped_writes;
    // The thread may have taken a batch already.
    assert!((1000 - 128..=1000).contains(&dropped), "{dropped}");
    store.shared.work.with(|queues| {
        assert_eq!(queues.reads.take(usize::MAX).len(), MAX_READS);
        let changes = queues.changes.take(usize::MAX);
        assert_eq!(changes.len(), MAX_CHANGES);
        assert_eq!(changes.last().unwrap().key, key(many - 1));
    });
}

/// Reads a line with a type character and a number (RESP 2).
fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.get(1..)?.trim().parse().ok()
}

/// Reads a command, an array of strings (RESP 2).
fn command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let arguments = (0..number(reader)?).map(|_| {
        let mut argument = vec![0; number(reader)? + 2];
        reader.read_exact(&mut argument).ok()?;
        argument.truncate(argument.len() - 2);
        Some(argument)
    });
    arguments.collect()
}

/// A server without records that delays responses by `delay`. Returns the number of reads.
fn slow_server(listener: &TcpListener, delay: Duration) -> usize {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut reads = 0;
    while let Some(command) = command(&mut reader) {
        if command[0] == b"MGET" {
            reads += 1;
            thread::sleep(delay);
            let none = "$-1\r\n".repeat(command.len() - 1);
            write!(stream, "*{}\r\n{none}", command.len() - 1).unwrap();
        } else {
            stream.write_all(b"+OK\r\n").unwrap();
        }
    }
    reads
}

#[test]
fn a_slow_server_delays_only_the_background_thread() {
    let listener = listen();
    let store = connect_to(&listener);
    let server = thread::spawn(move || slow_server(&listener, Duration::from_secs(2)));
    let store = keeps_working(store, 100);
    assert_eq!(store.statistics().writes, 0, "it has not answered yet");
    assert!(store.flush(MINUTE));
    let statistics = store.statistics();
    assert_eq!((statistics.writes, statistics.errors), (100, 0));
    drop(store);
    let reads = server.join().unwrap();
    assert!(reads <= 3, "{reads} batches");
}

#[test]
fn invalid_urls_and_namespaces_are_rejected() {
    let try_connect = |url: &str, namespace: &str| {
        let limits = StoreLimits::default();
        SharedStore::connect(url, namespace, limits, Instant::EPOCH, UNIX).unwrap_err()
    };
    for url in ["", "localhost", "http://localhost", "rediss://localhost"] {
        let error = try_connect(url, "a");
        assert!(matches!(error, ConnectError::Url { .. }), "{error}");
        assert!(error.to_string().contains("redis://host:6379/0"), "{error}");
    }
    let error = try_connect("http://user:secret@localhost", "a").to_string();
    assert!(!error.contains("secret"), "{error}");
    for namespace in ["", "a b", "a/b", "a\r\nDEL", "*", &"a".repeat(65)] {
        let error = try_connect("redis://localhost", namespace);
        assert!(matches!(error, ConnectError::Namespace(_)), "{error}");
    }
}

#[test]
fn successive_changes_of_a_key_are_merged() {
    let at = |nanos| Some(Instant::from_nanos(nanos));
    let write = |taken| Change::Write { taken };
    for (earlier, later, both) in [
        (write(None), write(None), write(None)),
        (write(at(1)), write(None), write(at(1))),
        (write(at(1)), write(at(2)), write(at(2))),
        (write(at(1)), Change::Forget, Change::Forget),
        (Change::Forget, write(None), write(at(u64::MAX))),
        (Change::Forget, Change::Forget, Change::Forget),
    ] {
        let mut change = earlier;
        change.join(later);
        assert_eq!(change, both);
    }
}

/// A server that refuses the password of the first connection, and answers the second.
fn refusing_server(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while command(&mut reader).is_some() {
        let refusal = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";
        if stream.write_all(refusal).is_err() {
            break;
        }
    }
    slow_server(listener, Duration::ZERO);
}

#[test]
fn a_wrong_password_is_reported_at_once_and_its_end_too() {
    let listener = listen();
    let url = format!("redis://user:secret@{}", listener.local_addr().unwrap());
    let (report, reports) = mpsc::channel();
    let server = thread::spawn(move || refusing_server(&listener));
    let limits = StoreLimits::default();
    let store =
        SharedStore::connect_reporting(&url, "test", limits, Instant::EPOCH, UNIX, move |state| {
            report.send(state).unwrap();
        })
        .unwrap();
    let ServerState::Unavailable(reason) = reports.recv_timeout(MINUTE).unwrap() else {
        panic!("it was refused");
    };
    assert!(reason.to_lowercase().contains("auth"), "{reason}");
    assert!(!reason.contains("secret"), "{reason}");
    put(&store, &key(1), 40_000);
    assert!(store.flush(MINUTE));
    assert_eq!(reports.recv_timeout(MINUTE), Ok(ServerState::Available));
    drop(store);
    assert!(reports.recv().is_err(), "changes only");
    server.join().unwrap();
}
