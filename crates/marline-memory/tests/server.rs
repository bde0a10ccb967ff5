//! Several stores that share a real server.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use marline_memory::SharedStore;
use marline_proto::Instant;
use marline_proto::coordination::history::{
    Average, Capacity, PathKey, PathRecord, PathScope, PathStore, StoreLimits,
};
use tempfile::TempDir;

const UNIX: Duration = Duration::from_secs(1_800_000_000);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const START: Instant = Instant::EPOCH;

/// A server of the test on a Unix socket, without persistence and without a port.
struct Server {
    program: &'static str,
    dir: TempDir,
    child: Child,
}

impl Server {
    /// `None`, with a message, if no server program is installed.
    fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        for program in ["valkey-server", "redis-server"] {
            match run(program, &dir) {
                Ok(child) => {
                    let server = Self {
                        program,
                        dir,
                        child,
                    };
                    server.wait();
                    return Some(server);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => panic!("{program}: {error}"),
            }
        }
        eprintln!("skipped: neither valkey-server nor redis-server is installed (make deps)");
        None
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    fn wait(&self) {
        for _ in 0..1000 {
            if UnixStream::connect(self.socket()).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{} does not listen", self.program);
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = run(self.program, &self.dir).unwrap();
        self.wait();
    }

    fn store(&self) -> SharedStore {
        self.store_at(UNIX, "test")
    }

    fn store_at(&self, unix_time: Duration, namespace: &str) -> SharedStore {
        let url = format!("redis+unix://{}", self.socket().display());
        SharedStore::connect(&url, namespace, StoreLimits::default(), START, unix_time).unwrap()
    }

    /// The server's response to a command.
    fn command<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        let url = format!("redis+unix://{}", self.socket().display());
        let client = redis::Client::open(url).unwrap();
        let mut cmd = redis::Cmd::new();
        for argument in command {
            cmd.arg(argument);
        }
        cmd.query(&mut client.get_connection().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(program: &str, dir: &TempDir) -> std::io::Result<Child> {
    Command::new(program)
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(dir.path().join("socket"))
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
}

fn key(host: u8) -> PathKey {
    PathScope::Address.key(
        SocketAddr::from(([192, 0, 2, host], 443)),
        Some("a.example"),
    )
}

fn learn(store: &SharedStore, now: Instant, key: &PathKey, window: u64) {
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
    assert!(store.flush(MINUTE));
}

/// The record after the store has read it from the server.
fn read_through(store: &SharedStore, now: Instant, key: &PathKey) -> Option<PathRecord> {
    store.recall(now, key);
    assert!(store.flush(MINUTE));
    store.recall(now, key)
}

fn average(record: Option<PathRecord>) -> Option<f64> {
    record?.windows.average(Average::Mean)
}

#[test]
fn records_are_shared_between_stores() {
    let Some(server) = Server::start() else {
        return;
    };
    let (one, other) = (server.store(), server.store());
    assert_eq!(read_through(&other, START, &key(1)), None);
    // The second recall of a missing record requests it from the server again.
    assert!(other.flush(MINUTE));
    learn(&one, START, &key(1), 40_000);
    assert_eq!(
        other.recall(START, &key(1)),
        None,
        "no call waits for a response"
    );
    let record = read_through(&other, START, &key(1)).unwrap();
    assert_eq!(record.capacity.unwrap().window, 40_000);
    assert_eq!(average(Some(record)), Some(40_000.0));
    let statistics = other.statistics();
    assert_eq!((statistics.fetched, statistics.records), (1, 1));
    // The record may have been available to the fourth recall, or to the fifth.
    assert_eq!(statistics.hits + statistics.misses, 5);
    assert!(statistics.misses >= 3 && statistics.errors == 0);

    // Namespaces are separate, and records age by the wall clock.
    assert_eq!(
        read_through(&server.store_at(UNIX, "else"), START, &key(1)),
        None
    );
    let later = server.store_at(UNIX + 59 * MINUTE, "test");
    assert!(read_through(&later, START, &key(1)).is_some());
    assert_eq!(later.recall(START + MINUTE, &key(1)), None);
    assert_eq!(
        read_through(&server.store_at(UNIX + 60 * MINUTE, "test"), START, &key(1)),
        None
    );
}

#[test]
fn the_last_writer_wins_and_the_newer_capacity_is_kept() {
    let Some(server) = Server::start() else {
        return;
    };
    let (one, other) = (server.store(), server.store());
    learn(&one, START, &key(1), 40_000);
    learn(&other, START + SECOND, &key(1), 80_000);
    // An older record in memory is refreshed.
    let late = START + MINUTE;
    assert_eq!(average(read_through(&one, late, &key(1))), Some(80_000.0));
    // Its own sample is added; an update without a capacity leaves the stored one.
    one.update(late, &key(1), &mut |record| {
        record.windows.add(Average::Mean, 20_000);
    });
    assert!(one.flush(MINUTE));
    let record = read_through(&other, late, &key(1)).unwrap();
    assert_eq!(record.capacity.unwrap().window, 80_000);
    assert_eq!(average(Some(record)), Some(50_000.0));
}

#[test]
fn a_taken_capacity_is_removed_for_later_readers() {
    let Some(server) = Server::start() else {
        return;
    };
    let (one, other) = (server.store(), server.store());
    learn(&one, START, &key(1), 40_000);
    assert!(
        read_through(&other, START, &key(1))
            .unwrap()
            .capacity
            .is_some()
    );
    other.update(START, &key(1), &mut |record| record.capacity = None);
    assert!(other.flush(MINUTE));
    assert_eq!(
        read_through(&other, START + MINUTE, &key(1))
            .unwrap()
            .capacity,
        None
    );
    assert_eq!(
        read_through(&server.store(), START, &key(1))
            .unwrap()
            .capacity,
        None
    );
    learn(&one, START + MINUTE, &key(1), 50_000);
    let record = read_through(&other, START + MINUTE, &key(1)).unwrap();
    assert_eq!(record.capacity.unwrap().window, 50_000);
}

#[test]
fn a_removed_record_is_deleted_on_the_server() {
    let Some(server) = Server::start() else {
        return;
    };
    let store = server.store();
    learn(&store, START, &key(1), 40_000);
    store.forget(START, &key(1));
    assert_eq!(read_through(&store, START, &key(1)), None);
    assert_eq!(server.command::<u64>(&["DBSIZE"]), 0);
}

#[test]
fn records_expire_at_the_server() {
    let Some(server) = Server::start() else {
        return;
    };
    let store = server.store();
    learn(&store, START, &key(1), 40_000);
    let names: Vec<String> = server.command(&["KEYS", "*"]);
    assert_eq!(names, ["test:1/192.0.2.1/32/a.example"]);
    let left: u64 = server.command(&["PTTL", &names[0]]);
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");
}

#[test]
fn malformed_values_are_ignored() {
    let Some(server) = Server::start() else {
        return;
    };
    let store = server.store();
    let name = |host| format!("test:1/192.0.2.{host}/32/a.example");
    server.command::<()>(&["SET", &name(1), "no record"]);
    server.command::<u64>(&["LPUSH", &name(2), "no string"]);
    server.command::<()>(&["SET", &name(3), &"long".repeat(100_000)]);
    for host in 1..4 {
        assert_eq!(read_through(&store, START, &key(host)), None);
        learn(&store, START, &key(host), 40_000);
        assert_eq!(
            average(read_through(&server.store(), START, &key(host))),
            Some(40_000.0)
        );
    }
}

#[test]
fn special_characters_in_server_names_are_no_commands() {
    let Some(server) = Server::start() else {
        return;
    };
    let peer = SocketAddr::from(([192, 0, 2, 1], 443));
    let odd = PathScope::Address.key(peer, Some("x\r\nFLUSHALL\r\n*:1/any"));
    let store = server.store();
    learn(&store, START, &key(1), 40_000);
    learn(&store, START, &odd, 60_000);
    assert_eq!(
        average(read_through(&server.store(), START, &odd)),
        Some(60_000.0)
    );
    assert_eq!(server.command::<u64>(&["DBSIZE"]), 2);
}

#[test]
fn changes_during_an_outage_are_written_after_it() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let store = server.store();
    learn(&store, START, &key(1), 40_000);
    server.stop();
    store.update(START, &key(2), &mut |record| {
        record.windows.add(Average::Mean, 60_000);
    });
    assert!(store.recall(START, &key(2)).is_some());
    assert!(!store.flush(SECOND));
    assert!(store.statistics().errors > 0);
    server.start_again();
    assert!(store.flush(MINUTE));
    assert_eq!(
        average(read_through(&server.store(), START, &key(2))),
        Some(60_000.0)
    );
    assert_eq!(store.statistics().dropped_writes, 0);
}

#[test]
fn dropping_a_store_writes_its_changes() {
    let Some(server) = Server::start() else {
        return;
    };
    let store = server.store();
    for host in 0..200 {
        store.update(START, &key(host), &mut |record| record.samples += 1);
    }
    drop(store);
    assert_eq!(server.command::<u64>(&["DBSIZE"]), 200);
}
