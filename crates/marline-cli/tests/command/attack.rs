//! Clients that exhaust a server, with few resources of their own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use marline::TransportConfig;
use marline_http::client::{Client, ClientConfig, HttpVersion, Trust, parse_url};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::{Server, marline, run, text};

/// A site with files that do not fit into the buffers of a connection.
fn large_site(files: usize) -> TempDir {
    let root = TempDir::new().unwrap();
    for name in 0..files {
        let file = std::fs::File::create(root.path().join(name.to_string())).unwrap();
        file.set_len(64 << 20).unwrap();
    }
    std::fs::write(root.path().join("small"), "small").unwrap();
    root
}

/// Requests `path` without encryption, from a network of its own, and reads the first bytes of the response.
fn begin(server: SocketAddr, path: &str) -> Option<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let connecting = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(([127, 0, 9, 1], 0).into())?;
        socket.connect(server).await?.into_std()
    };
    let mut stream = runtime.block_on(connecting).ok()?;
    stream.set_nonblocking(false).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut response = [0; 16];
    stream.read_exact(&mut response).ok()?;
    Some(stream)
}

#[test]
fn a_log_whose_reader_stalls_stops_neither_requests_nor_the_end() {
    let root = large_site(0);
    let mut command = marline(&["serve", text(root.path()), "--cleartext"]);
    command.args(["--listen", "127.0.0.1:0", "--access-log", "-"]);
    // Nobody reads it.
    command.stdout(Stdio::piped());
    let server = Server::spawn(&mut command);
    let address: SocketAddr = server.address.parse().unwrap();
    let path = "x".repeat(8000);
    // More than a pipe holds, by far.
    for _ in 0..100 {
        assert!(begin(address, &format!("/{path}")).is_some());
    }
    let started = Instant::now();
    assert_eq!(server.terminate().0, 0);
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[test]
fn responses_that_nobody_reads_do_not_use_up_the_files_of_the_process() {
    let root = large_site(60);
    let script = "ulimit -n 160; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_marline")]);
    command.args(["serve", text(root.path()), "--cleartext"]);
    let server = Server::spawn(
        command
            .stdout(Stdio::null())
            .args(["--listen", "127.0.0.1:0"]),
    );
    let address = server.address.parse().unwrap();
    let held: Vec<_> = (0..200)
        .map(|number| begin(address, &format!("/{}", number % 60)))
        .collect();
    assert!(held.iter().flatten().count() > 10);
    for version in ["3", "2"] {
        let url = server.url("small");
        let output = run(&["get", &url, "--insecure", "--http", version]);
        assert_eq!(output.stdout, b"small", "HTTP/{version}: {output:?}");
    }
}

const MIB: u64 = 1 << 20;

/// Connections, and requests of each, whose responses nobody reads.
const CONNECTIONS: usize = 24;
/// Bytes that unread responses hold at least.
const FLOOD: u64 = 32 * MIB;
const REQUESTS: usize = 10;

/// The memory of a process that is in no file, in bytes.
fn anonymous(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// An application that sends each client more than it will read; its URL.
fn torrent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut sent = stream.read(&mut [0; 4096]).and_then(|_| {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
                });
                while sent.is_ok() {
                    sent = stream.write_all(&[7; 1 << 16]);
                }
            });
        }
    });
    url
}

/// Requests much over HTTP/3 and reads nothing of it; returns the most memory that `held` shows.
async fn flood(server: &Server, before: u64, held: impl Fn() -> u64) -> u64 {
    let mut config = ClientConfig {
        version: HttpVersion::Http3,
        trust: Trust::Insecure,
        fallback: false,
        ..ClientConfig::default()
    };
    let transport = TransportConfig {
        stream_receive_window: Some(1 << 16),
        ..TransportConfig::default()
    };
    config.quic.transport = transport.into();
    let client = Client::new(config).unwrap();
    let url = parse_url(&server.url(""), HttpVersion::Http3).unwrap();
    let headers = http::HeaderMap::new();
    let (mut connections, mut unread) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let connection = client.connect(&url.origin).await.unwrap();
        for _ in 0..REQUESTS {
            let response = connection.get(&url.origin, &url.uri, &headers).await;
            unread.push(response.unwrap());
        }
        connections.push(connection);
    }
    // It ends where the memory does not grow for a second; on a busy machine it may begin late.
    let (mut most, mut looks) = (0, 0);
    while looks < 10 || most < before + FLOOD && looks < 600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = held();
        looks = if now < most + MIB { looks + 1 } else { 0 };
        most = most.max(now);
    }
    most
}

#[test]
fn an_idle_proxy_gives_the_memory_of_a_flood_back() {
    let application = torrent();
    let mut command = marline(&["proxy", "--to", &application, "--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command.stdout(Stdio::null()));
    let held = || anonymous(server.child.id());
    let before = held();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let during = runtime.block_on(flood(&server, before, held));
    assert!(during > before + FLOOD, "{before} {during}");
    // Nothing happens after the clients have left; the connections of the application end with theirs.
    let left = Instant::now();
    while held() > before + 12 * MIB {
        let waited = left.elapsed();
        assert!(
            waited < Duration::from_secs(60),
            "{before} {during} {}",
            held()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
}
