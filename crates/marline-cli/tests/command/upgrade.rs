//! Another process takes over.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderMap;
use marline_http::client::{
    Client, ClientConfig, ClientError, Connection, HttpVersion, ParsedUrl, Trust, parse_url,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::{Server, marline, run, site, text};

const VERSIONS: [HttpVersion; 3] = [HttpVersion::Http11, HttpVersion::Http2, HttpVersion::Http3];

/// Larger than what is under way of a response that is not read.
const LARGE: u64 = 64 << 20;

/// Ends a process that is no child of this one.
pub(crate) struct Process(pub(crate) String);

impl Process {
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.0]).status().unwrap();
        assert!(sent.success());
    }

    /// Whether it has ended; whoever started it may not have noticed.
    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap().trim_start();
        state.is_empty() || state.starts_with('Z')
    }

    async fn ends(&self) {
        while !self.has_ended() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.0]).output();
    }
}

/// The process that has taken over, once the server says so.
pub(crate) fn successor(server: &mut Server) -> Process {
    loop {
        let line = server.line();
        assert!(
            !line.is_empty() && !line.contains("this process goes on"),
            "{line}"
        );
        if let Some((before, _)) = line.split_once(" serves from now on") {
            let (_, process) = before.rsplit_once(' ').unwrap();
            return Process(process.to_owned());
        }
    }
}

pub(crate) fn line_with(server: &mut Server, words: &str) -> String {
    loop {
        let line = server.line();
        assert!(!line.is_empty(), "it ended");
        if line.contains(words) {
            return line;
        }
    }
}

/// A client of one version.
struct Visitor {
    client: Client,
    url: ParsedUrl,
}

impl Visitor {
    fn of(url: &str, version: HttpVersion) -> Self {
        let config = ClientConfig {
            version,
            trust: Trust::Insecure,
            fallback: false,
            ..ClientConfig::default()
        };
        Self {
            client: Client::new(config).unwrap(),
            url: parse_url(url, version).unwrap(),
        }
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        self.client.connect(&self.url.origin).await
    }

    async fn get(&self, connection: &Connection) -> Result<(), ClientError> {
        let ParsedUrl { origin, uri } = &self.url;
        let response = connection.get(origin, uri, &HeaderMap::new()).await?;
        let mut body = response.into_body();
        let mut content = Vec::new();
        while let Some(chunk) = body.chunk().await? {
            content.extend_from_slice(&chunk);
        }
        assert_eq!(content, b"first");
        Ok(())
    }

    /// Visits with a new connection for each request, or one that is kept until the server ends it. Returns the failures.
    async fn visit(self, keeps: bool, visits: Arc<Visits>) -> Vec<String> {
        let mut failed = Vec::new();
        let mut kept = None;
        while !visits.end.load(Ordering::Relaxed) {
            let is_kept = kept.is_some();
            let connection = match kept.take() {
                Some(connection) => Ok(connection),
                None => self.connect().await,
            };
            let visited = match &connection {
                Ok(connection) => self.get(connection).await,
                Err(error) => Err(ClientError::NoResponse {
                    cause: error.to_string().into(),
                }),
            };
            match visited {
                Ok(()) => {
                    visits.served.fetch_add(1, Ordering::Relaxed);
                    kept = connection.ok().filter(|one| keeps && !one.is_closed());
                }
                // It was closed as the request was sent, or refused it: a client sends it again (RFC 9110, section 9.2.2).
                Err(ClientError::NoResponse { .. }) if is_kept => {}
                Err(error) => failed.push(format!("{error}: {:?}", self.client.config().version)),
            }
        }
        failed
    }

    /// Downloads the large file, and waits after the beginning until `goes_on`. Returns its length.
    async fn download(self, begun: Arc<AtomicUsize>, goes_on: Arc<AtomicBool>) -> u64 {
        let connection = self.connect().await.unwrap();
        let ParsedUrl { origin, uri } = &self.url;
        let response = connection.get(origin, uri, &HeaderMap::new()).await;
        let mut body = response.unwrap().into_body();
        let mut len = body.chunk().await.unwrap().unwrap().len() as u64;
        begun.fetch_add(1, Ordering::Relaxed);
        while !goes_on.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        while let Some(chunk) = body.chunk().await.unwrap() {
            len += chunk.len() as u64;
        }
        len
    }
}

#[derive(Default)]
struct Visits {
    served: AtomicUsize,
    end: AtomicBool,
}

impl Visits {
    /// Waits until so many more are served.
    async fn more(&self, count: usize) {
        let end = self.served.load(Ordering::Relaxed) + count;
        while self.served.load(Ordering::Relaxed) < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The first line of a response over HTTP/1.1.
fn answer_of(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

async fn no_request_is_lost(workers: &str) {
    let root = site();
    let large = fs::File::create(root.path().join("large")).unwrap();
    large.set_len(LARGE).unwrap();
    let state = TempDir::new().unwrap();
    let mut server = Server::start(&[
        text(root.path()),
        "--state",
        text(state.path()),
        "--workers",
        workers,
        "--metrics",
        "127.0.0.1:0",
        "--redirect-http",
        "127.0.0.1:0",
    ]);
    let first = Process(server.child.id().to_string());
    let (small, large) = (server.url("a.txt"), server.url("large"));
    let visits = Arc::new(Visits::default());
    let visit = |(version, keeps)| {
        let visitor = Visitor::of(&small, version);
        tokio::spawn(visitor.visit(keeps, Arc::clone(&visits)))
    };
    let kinds = VERSIONS.map(|version| [(version, false), (version, true)]);
    let visiting: Vec<_> = kinds.into_iter().flatten().map(visit).collect();
    let (begun, goes_on) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let downloading: Vec<JoinHandle<u64>> = VERSIONS
        .map(|version| {
            let visitor = Visitor::of(&large, version);
            tokio::spawn(visitor.download(Arc::clone(&begun), Arc::clone(&goes_on)))
        })
        .into();
    while begun.load(Ordering::Relaxed) < downloading.len() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    visits.more(50).await;

    first.signal("-USR2");
    let second = successor(&mut server);
    visits.more(50).await;
    second.signal("-USR2");
    let third = successor(&mut server);
    visits.more(50).await;
    assert!(!first.has_ended(), "it has downloads");
    for (name, answer) in [("metrics on", "200 OK"), ("redirecting", "308")] {
        let line = server.printed.iter().find(|line| line.starts_with(name));
        let (_, address) = line.unwrap().split_once("http://").unwrap();
        let address = address.split([' ', '/']).next().unwrap();
        let answered = answer_of(address);
        assert!(answered.contains(answer), "{name}: {answered}");
    }

    goes_on.store(true, Ordering::Relaxed);
    for download in downloading {
        assert_eq!(download.await.unwrap(), LARGE);
    }
    assert!(server.child.wait().unwrap().success());
    second.ends().await;
    visits.more(50).await;
    visits.end.store(true, Ordering::Relaxed);
    for visitor in visiting {
        assert_eq!(visitor.await.unwrap(), Vec::<String>::new());
    }
    assert!(!third.has_ended());
    third.signal("-TERM");
    third.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_with_one_worker() {
    no_request_is_lost("1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_with_several_workers() {
    no_request_is_lost("2").await;
}

#[test]
fn a_program_that_does_not_start_leaves_the_old_one_serving() {
    let root = site();
    let place = TempDir::new().unwrap();
    let config = place.path().join("site.toml");
    let dir = format!("dir = '{}'\n", text(root.path()));
    fs::write(&config, &dir).unwrap();
    let mut server = Server::start(&["--config", text(&config)]);
    let url = server.url("a.txt");
    for (wrong, words) in [
        ("no_such_key = true\n".to_owned(), "no_such_key"),
        ("dir = 'missing'\n".to_owned(), "cannot serve"),
    ] {
        fs::write(&config, wrong).unwrap();
        server.signal("-USR2");
        line_with(&mut server, words);
        line_with(&mut server, "this process goes on");
        for version in ["3", "2", "1.1"] {
            let output = run(&["get", &url, "--insecure", "--http", version]);
            assert_eq!(output.stdout, b"first", "HTTP/{version}: {output:?}");
        }
    }
    fs::write(&config, &dir).unwrap();
    server.signal("-USR2");
    let process = successor(&mut server);
    assert!(server.child.wait().unwrap().success());
    assert_eq!(run(&["get", &url, "--insecure"]).stdout, b"first");
    process.signal("-TERM");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_at_an_address_that_is_left_go_on() {
    let root = site();
    let large = fs::File::create(root.path().join("large")).unwrap();
    large.set_len(LARGE).unwrap();
    let place = TempDir::new().unwrap();
    let config = place.path().join("site.toml");
    let listen = |address: &str| {
        let dir = text(root.path());
        fs::write(&config, format!("dir = '{dir}'\nlisten = '{address}'\n")).unwrap();
    };
    listen("127.0.0.1:0");
    let mut server = Server::spawn(&mut marline(&["serve", "--config", text(&config)]));
    let url = server.url("large");
    let (begun, goes_on) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let downloading = VERSIONS.map(|version| {
        let visitor = Visitor::of(&url, version);
        tokio::spawn(visitor.download(Arc::clone(&begun), Arc::clone(&goes_on)))
    });
    while begun.load(Ordering::Relaxed) < downloading.len() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    listen("127.0.0.2:0");
    server.signal("-USR2");
    let process = successor(&mut server);
    goes_on.store(true, Ordering::Relaxed);
    for download in downloading {
        assert_eq!(download.await.unwrap(), LARGE);
    }
    assert!(server.child.wait().unwrap().success());
    let (_, port) = server.address.split_once(':').unwrap();
    let left = TcpStream::connect(format!("127.0.0.1:{port}"));
    assert!(left.is_err(), "nobody listens there");
    process.signal("-TERM");
}

#[test]
fn one_address_is_not_exchanged_for_all_of_its_port() {
    let root = site();
    let place = TempDir::new().unwrap();
    let config = place.path().join("site.toml");
    let listen = |address: &str| {
        let dir = text(root.path());
        fs::write(&config, format!("dir = '{dir}'\nlisten = '{address}'\n")).unwrap();
    };
    for (first, host) in [("127.0.0.1:0", "*"), ("*:0", "127.0.0.1")] {
        listen(first);
        let mut server = Server::spawn(&mut marline(&["serve", "--config", text(&config)]));
        let (_, port) = server.address.rsplit_once(':').unwrap();
        let port = port.to_owned();
        listen(&format!("{host}:{port}"));
        server.signal("-USR2");
        let line = line_with(&mut server, "cannot take over");
        assert!(line.contains("only a restart"), "{line}");
        line_with(&mut server, "this process goes on");
        let url = format!("https://127.0.0.1:{port}/a.txt");
        for version in ["3", "2", "1.1"] {
            let output = run(&["get", &url, "--insecure", "--http", version]);
            assert_eq!(output.stdout, b"first", "HTTP/{version}: {output:?}");
        }
    }
}

/// A program that gets ready only once `place/ready` exists, at the path of a server.
fn replace(program: &Path, place: &Path) {
    let script = place.join("script");
    let path = text(place);
    let text =
        format!("#!/bin/sh\necho started >&2\nwhile ! [ -e {path}/ready ]; do sleep 0.05; done\n");
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(program).unwrap();
    symlink(script, program).unwrap();
}

#[test]
fn the_program_at_the_path_is_started_and_no_other_meanwhile() {
    let root = site();
    let place = TempDir::new().unwrap();
    let program = place.path().join("marline");
    symlink(env!("CARGO_BIN_EXE_marline"), &program).unwrap();
    let known = marline(&["serve", text(root.path()), "--listen", "127.0.0.1:0"]);
    let mut command = Command::new(&program);
    command.args(known.get_args());
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env_remove("STATE_DIRECTORY");
    let mut server = Server::spawn(&mut command);
    replace(&program, place.path());
    server.signal("-USR2");
    assert_eq!(server.line(), "started\n");
    server.signal("-USR2");
    line_with(&mut server, "SIGUSR2 was ignored");
    fs::write(place.path().join("ready"), "").unwrap();
    let line = line_with(&mut server, "this process goes on");
    assert!(line.contains("has ended (exit status: 0)"), "{line}");
    let url = server.url("a.txt");
    assert_eq!(run(&["get", &url, "--insecure"]).stdout, b"first");
}
