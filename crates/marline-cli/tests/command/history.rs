//! The history of a server, before and after it is restarted.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::*;

/// The delay of a datagram through the relay.
const DELAY: Duration = Duration::from_millis(10);

#[expect(
    clippy::disallowed_methods,
    reason = "the tested programs run in real time"
)]
fn now() -> Instant {
    Instant::now()
}

/// Datagrams in flight, each with the time at which it arrives.
#[derive(Default)]
struct Pipe {
    under_way: Mutex<VecDeque<(Instant, Vec<u8>)>>,
    more: Condvar,
}

impl Pipe {
    /// Passes the datagrams of `from` to `deliver` with a delay, and their senders to `on_sender`.
    fn run(
        from: UdpSocket,
        on_sender: impl Fn(SocketAddr) + Send + 'static,
        deliver: impl Fn(&[u8]) + Send + 'static,
    ) {
        let pipe = Arc::<Self>::default();
        let other_end = Arc::clone(&pipe);
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            loop {
                let Ok((size, sender)) = from.recv_from(&mut buffer) else {
                    continue;
                };
                on_sender(sender);
                let datagram = (now() + DELAY, buffer[..size].to_vec());
                pipe.under_way.lock().unwrap().push_back(datagram);
                pipe.more.notify_one();
            }
        });
        std::thread::spawn(move || {
            loop {
                let mut under_way = other_end.under_way.lock().unwrap();
                while under_way.is_empty() {
                    under_way = other_end.more.wait(under_way).unwrap();
                }
                let next = under_way.pop_front();
                drop(under_way);
                if let Some((at, datagram)) = next {
                    std::thread::sleep(at.saturating_duration_since(now()));
                    deliver(&datagram);
                }
            }
        });
    }
}

/// A path to `server` with a round-trip time of 20 ms; returns the address at which it begins.
fn relay(server: &str) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(server).unwrap();
    let address = front.local_addr().unwrap();
    let client = Arc::<Mutex<Option<SocketAddr>>>::default();
    let (seen, to_server) = (Arc::clone(&client), back.try_clone().unwrap());
    Pipe::run(
        front.try_clone().unwrap(),
        move |sender| *seen.lock().unwrap() = Some(sender),
        move |datagram| drop(to_server.send(datagram)),
    );
    Pipe::run(
        back,
        |_| {},
        move |datagram| {
            if let Some(client) = *client.lock().unwrap() {
                let _ = front.send_to(datagram, client);
            }
        },
    );
    address
}

/// A site with a large file, and the configuration of its server.
struct Site {
    directory: TempDir,
    config: PathBuf,
}

impl Site {
    fn new(policy: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let public = directory.path().join("public");
        fs::create_dir(&public).unwrap();
        fs::write(public.join("large"), vec![7; 3_000_000]).unwrap();
        let config = directory.path().join("site.toml");
        let text = format!(
            "dir = 'public'\nmetrics = '127.0.0.1:0'\n[history]\nfile = 'paths.redb'\npolicy = '{policy}'\n"
        );
        fs::write(&config, text).unwrap();
        Self { directory, config }
    }

    /// Starts a server that logs into the directory `logs`.
    fn serve(&self, logs: &str) -> RelayedServer {
        let logs = self.directory.path().join(logs);
        let server = Server::start(&["--config", text(&self.config), "--qlog", text(&logs)]);
        RelayedServer::new(server, logs)
    }
}

/// A running server, behind the relay.
struct RelayedServer {
    server: Server,
    relay: SocketAddr,
    logs: PathBuf,
    downloads: TempDir,
}

impl RelayedServer {
    /// Starts a relay to `server`, which logs into `logs`.
    fn new(server: Server, logs: PathBuf) -> Self {
        Self {
            relay: relay(&server.address),
            server,
            logs,
            downloads: TempDir::new().unwrap(),
        }
    }

    /// Fetches the large file with a new client.
    fn fetch(&self) {
        let url = format!("https://{}/large", self.relay);
        let file = self.downloads.path().join("large");
        let output = run(&["get", &url, "--insecure", "--http", "3", "-o", text(&file)]);
        assert!(output.status.success(), "{output:?}");
    }

    fn metrics(&self) -> String {
        let printed = self.server.printed.iter();
        let mut pages = printed.filter_map(|line| line.strip_prefix("metrics on "));
        let url = pages.next().unwrap();
        let output = run(&["get", url, "--http", "1.1c"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until `is_good` is true for the value of a metric, and returns it.
    fn metric(&self, name: &str, is_good: impl Fn(u64) -> bool) -> u64 {
        let until = now() + Duration::from_secs(10);
        loop {
            let text = self.metrics();
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            match value {
                Some(value) if is_good(value) => return value,
                _ if now() > until => panic!("{name} in {text}"),
                _ => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn stored_records(&self) -> Option<&str> {
        let printed = self.server.printed.iter();
        let mut lines = printed.filter(|line| line.starts_with("records of paths in "));
        lines.next().and_then(|line| line.rsplit(' ').next())
    }

    /// Stops it by SIGTERM, and returns the summary of each log.
    fn stop(self) -> Vec<Value> {
        let (status, rest) = self.server.terminate();
        assert_eq!((status, rest.lines().count()), (0, 1), "{rest}");
        let logs = fs::read_dir(&self.logs).unwrap();
        let connections = logs.map(|log| {
            let log = log.unwrap().path();
            let output = run(&["qlog", "summary", "--json", text(&log)]);
            assert!(output.status.success(), "{output:?}");
            let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
            summary[0]["connections"][0].clone()
        });
        connections.collect()
    }
}

const LEARNT: &str = "marline_initial_windows_total{window=\"learnt\"}";
const DEFAULT: &str = "marline_initial_windows_total{window=\"default\"}";

#[test]
fn learned_windows_are_kept_across_restarts_of_the_server() {
    let site = Site::new("average");
    let server = site.serve("first");
    assert_eq!(server.stored_records(), Some("0"));
    server.fetch();
    server.metric("marline_path_records", |records| records == 1);
    server.fetch();
    assert_eq!(server.metric(DEFAULT, |_| true), 1);
    assert_eq!(server.metric(LEARNT, |_| true), 1);
    let logs = server.stop();
    let learnt = logs
        .iter()
        .map(|log| log["initial_windows"][0]["learnt"] == true);
    assert_eq!(learnt.filter(|learnt| *learnt).count(), 1, "{logs:?}");

    let server = site.serve("second");
    assert_eq!(server.stored_records(), Some("1"));
    server.fetch();
    assert_eq!(server.metric(LEARNT, |_| true), 1);
    assert_eq!(server.metric(DEFAULT, |_| true), 0);
    let bytes = server.metric("marline_learnt_initial_window_bytes_sum", |_| true);
    let logs = server.stop();
    let first = &logs[0]["initial_windows"][0];
    assert_eq!(first["window"], bytes, "{first}");
    assert!(
        first["window"].as_u64() > first["default"].as_u64(),
        "{first}"
    );
}

#[test]
fn stored_history_survives_sigkill() {
    let site = Site::new("average");
    let server = site.serve("first");
    server.fetch();
    server.metric("marline_path_store_writes_total", |writes| writes > 0);
    drop(server);

    let server = site.serve("second");
    assert_eq!(server.stored_records(), Some("1"));
    server.fetch();
    assert_eq!(server.metric(LEARNT, |_| true), 1);
    let logs = server.stop();
    assert_eq!(logs[0]["initial_windows"][0]["learnt"], true, "{logs:?}");
}

#[test]
fn a_restarted_server_uses_careful_resume() {
    let site = Site::new("careful");
    let server = site.serve("first");
    server.fetch();
    for log in server.stop() {
        assert_eq!(log["careful_resume"], serde_json::json!([]));
        assert_eq!(log["initial_windows"][0]["learnt"], false);
    }

    let server = site.serve("second");
    assert_eq!(server.stored_records(), Some("1"));
    server.fetch();
    let steps = "marline_careful_resume_total";
    server.metric(&format!("{steps}{{step=\"remembered\"}}"), |paths| {
        paths == 1
    });
    server.metric(&format!("{steps}{{step=\"jumped\"}}"), |jumps| jumps == 1);
    assert_eq!(server.metric(DEFAULT, |_| true), 1);
    let logs = server.stop();
    let phases = logs[0]["careful_resume"].as_array().unwrap();
    assert_eq!(phases[0]["new"], "reconnaissance", "{phases:?}");
    assert!(
        phases[0]["saved_window"].as_u64() > Some(50_000),
        "{phases:?}"
    );
    assert!(
        phases[0]["saved_rtt_s"].as_f64() >= Some(0.02),
        "{phases:?}"
    );
    assert_eq!(phases[1]["new"], "unvalidated", "{phases:?}");
    assert_eq!(phases[1]["trigger"], "congestion_window_limited");
    assert!(phases[1]["window"].as_u64() > phases[1]["window_before"].as_u64());
}

#[test]
fn errors_of_the_store_are_printed_in_one_line() {
    let site = Site::new("careful");
    let public = site.directory.path().join("public");
    let serve = ["serve", text(&public), "--listen", "127.0.0.1:0"];
    let with = |file: &Path, words: &[&str]| {
        let arguments = [&serve[..], &["--history", text(file)]].concat();
        fails(&arguments, 1, words);
    };
    with(
        Path::new("/no/such/directory/paths"),
        &["cannot open", "directory exists"],
    );
    with(&public, &["not a regular file", "name another"]);
    with(&public.join("large"), &["not a store of learned paths"]);
    assert_eq!(fs::read(public.join("large")).unwrap().len(), 3_000_000);

    let server = site.serve("logs");
    let file = site.directory.path().join("paths.redb");
    with(&file, &["in use by another process", "name another"]);
    drop(server);

    for (keys, words) in [
        ("server = 'tcp://h'", &["site.toml:3:", "redis://host"][..]),
        (
            "server = 'redis://h'\nnamespace = 'no/name'",
            &["site.toml:4:", "letters"],
        ),
        ("lifetime = 'long'", &["site.toml:3:", "a time from"]),
    ] {
        fs::write(&site.config, format!("dir = 'public'\n[history]\n{keys}\n")).unwrap();
        fails(&["serve", "--config", text(&site.config)], 2, words);
    }
}

#[test]
fn the_history_profile_keeps_history_in_memory() {
    let site = Site::new("careful");
    let public = site.directory.path().join("public");
    let arguments = [
        text(&public),
        "--profile",
        "history",
        "--metrics",
        "127.0.0.1:0",
    ];
    let server = Server::start(&arguments);
    let visited = RelayedServer::new(server, PathBuf::new());
    assert_eq!(visited.stored_records(), None);
    visited.fetch();
    visited.metric("marline_path_records", |records| records == 1);
    let help = String::from_utf8(run(&["serve", "--help"]).stdout).unwrap();
    assert!(help.contains("[history]") && help.contains("--history <FILE>"));
    drop(visited);
    let plain = Server::start(&[text(&public), "--metrics", "127.0.0.1:0"]);
    let visited = RelayedServer::new(plain, PathBuf::new());
    visited.fetch();
    assert!(!visited.metrics().contains("marline_path_records"));
}
