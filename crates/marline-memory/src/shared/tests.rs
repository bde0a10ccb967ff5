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

/// Connections come and go. Each call returns long before the server would have to be given up, and what
/// was learnt is there.
fn goes_on_learning(store: SharedStore, connections: u32) -> SharedStore {
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
fn a_server_that_never_answers_delays_nothing() {
    let listener = listen();
    let store = connect_to(&listener);
    // Were one call to wait, a thousand would take more than an hour.
    let store = goes_on_learning(store, 1000);
    let _silent = listener.accept().unwrap();
    put(&store, &key(1000), 40_000);
    let statistics = store.statistics();
    assert_eq!((statistics.writes, statistics.fetched), (0, 0));
    assert_eq!((statistics.dropped_writes, statistics.records), (0, 1001));
    assert!(!store.flush(Duration::from_millis(10)));
}

#[test]
fn a_server_that_is_gone_delays_nothing_and_is_tried_again() {
    let listener = listen();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    drop(listener);
    let store = goes_on_learning(connect(&url), 1000);
    assert!(!store.flush(Duration::from_millis(500)));
    let statistics = store.statistics();
    assert!(statistics.errors > 0);
    assert!(
        statistics.errors < 10,
        "{statistics:?}: it gives the server time"
    );
    assert_eq!((statistics.writes, statistics.dropped_writes), (0, 0));
}

#[test]
fn what_waits_is_bounded_and_the_oldest_goes() {
    let listener = listen();
    let store = connect_to(&listener);
    let many = MOST_CHANGES as u32 + 1000;
    let store = goes_on_learning(store, many);
    let dropped = store.statistics().dropped_writes;
    // The thread may have a batch in hand.
    assert!((1000 - 128..=1000).contains(&dropped), "{dropped}");
    store.shared.work.with(|queues| {
        assert_eq!(queues.questions.take(usize::MAX).len(), MOST_QUESTIONS);
        let changes = queues.changes.take(usize::MAX);
        assert_eq!(changes.len(), MOST_CHANGES);
        assert_eq!(changes.last().unwrap().0, key(many - 1));
    });
}

/// A number with a letter before it, on a line of its own.
fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.get(1..)?.trim().parse().ok()
}

/// A command: an array of strings (RESP 2).
fn command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let arguments = (0..number(reader)?).map(|_| {
        let mut argument = vec![0; number(reader)? + 2];
        reader.read_exact(&mut argument).ok()?;
        argument.truncate(argument.len() - 2);
        Some(argument)
    });
    arguments.collect()
}

/// A server that has no records, and needs `delay` to say so; how often it was asked.
fn slow_server(listener: &TcpListener, delay: Duration) -> usize {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut asked = 0;
    while let Some(command) = command(&mut reader) {
        if command[0] == b"MGET" {
            asked += 1;
            thread::sleep(delay);
            let none = "$-1\r\n".repeat(command.len() - 1);
            write!(stream, "*{}\r\n{none}", command.len() - 1).unwrap();
        } else {
            stream.write_all(b"+OK\r\n").unwrap();
        }
    }
    asked
}

#[test]
fn a_slow_server_is_waited_for_in_the_background() {
    let listener = listen();
    let store = connect_to(&listener);
    let server = thread::spawn(move || slow_server(&listener, Duration::from_secs(2)));
    let store = goes_on_learning(store, 100);
    assert_eq!(store.statistics().writes, 0, "it has not answered yet");
    assert!(store.flush(MINUTE));
    let statistics = store.statistics();
    assert_eq!((statistics.writes, statistics.errors), (100, 0));
    drop(store);
    let asked = server.join().unwrap();
    assert!(asked <= 3, "{asked} batches");
}

#[test]
fn what_no_server_can_be_is_refused() {
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
fn of_two_changes_both_count() {
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
