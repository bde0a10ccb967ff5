//! A server that is killed and started again, and signals.

use std::fs;
use std::io::{BufRead, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use marline_http::client::{Client, ClientConfig, HttpVersion, ParsedUrl, Trust, parse_url};
use tempfile::TempDir;

use crate::{Server, fails, run, site, text};

impl Server {
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// The next line on standard error.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }
}

fn client() -> Arc<Client> {
    let config = ClientConfig {
        trust: Trust::Insecure,
        fallback: false,
        ..ClientConfig::default()
    };
    Arc::new(Client::new(config).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_killed_server_are_reset_at_once_and_resume_with_0_rtt() {
    let root = site();
    let state = TempDir::new().unwrap();
    let arguments = [text(root.path()), "--state", text(state.path())];
    let mut server = Server::start_to_be_replaced(&arguments);
    let address = server.address.clone();
    let ParsedUrl { origin, uri } = parse_url(&server.url("a.txt"), HttpVersion::Http3).unwrap();
    let client = client();
    let connection = client.connect(&origin).await.unwrap();
    let headers = http::HeaderMap::new();
    let fetch = || connection.get(&origin, &uri, &headers);
    let mut response = fetch().await.unwrap().into_body();
    while response.chunk().await.unwrap().is_some() {}
    connection.quic().unwrap().confirmed().await.unwrap();
    // Tickets follow the handshake, two for each connection, of which this takes one.
    let resumed = async {
        loop {
            let other = client.connect(&origin).await.unwrap();
            let quic = other.quic().unwrap();
            quic.confirmed().await.unwrap();
            if quic.is_resumed() {
                break;
            }
        }
    };
    let resumed = tokio::time::timeout(Duration::from_secs(120), resumed).await;
    resumed.expect("a ticket comes");

    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let restarted = Server::start_at(&address, &arguments);
    assert_eq!(restarted.pin, server.pin, "the certificate is kept");
    let lost = tokio::time::timeout(Duration::from_secs(20), fetch()).await;
    assert!(lost.expect("it is reset at once").is_err());

    let connection = client.connect(&origin).await.unwrap();
    let response = connection.get(&origin, &uri, &Default::default()).await;
    assert_eq!(response.unwrap().status(), 200);
    let quic = connection.quic().unwrap();
    quic.confirmed().await.unwrap();
    assert!(quic.is_resumed() && quic.early_data_accepted());
}

#[tokio::test]
async fn a_server_that_refuses_0_rtt_resumes_sessions_without() {
    let (root, files) = (site(), TempDir::new().unwrap());
    let config = files.path().join("site.toml");
    for zero_rtt in [false, true] {
        let settings = format!("dir = {:?}\nzero_rtt = {zero_rtt}\n", root.path());
        fs::write(&config, settings).unwrap();
        let server = Server::start(&["--config", text(&config)]);
        let url = server.url("a.txt");
        let ParsedUrl { origin, uri } = parse_url(&url, HttpVersion::Http3).unwrap();
        let client = client();
        let mut resumed = Vec::new();
        while resumed.last() != Some(&true) {
            let connection = client.connect(&origin).await.unwrap();
            let response = connection.get(&origin, &uri, &Default::default()).await;
            let mut content = response.unwrap().into_body();
            while content.chunk().await.unwrap().is_some() {}
            let quic = connection.quic().unwrap();
            quic.confirmed().await.unwrap();
            resumed.push(quic.is_resumed());
            assert_eq!(quic.early_data_accepted(), quic.is_resumed() && zero_rtt);
            // The session ticket follows the handshake: a later connection has it.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[test]
fn check_finds_what_a_server_would_refuse() {
    let (root, files) = (site(), TempDir::new().unwrap());
    let config = files.path().join("site.toml");
    let state = files.path().join("state");
    let write = |rest: &str| {
        let settings = format!(
            "state = {state:?}\n[[site]]\ndir = {:?}\n{rest}",
            root.path()
        );
        fs::write(&config, settings).unwrap();
    };
    write("");
    let check = ["check", text(&config)];
    assert!(run(&check).status.success());
    assert!(!state.exists(), "nothing is written");
    let mode = |path: &Path, mode: &str| {
        let changed = Command::new("chmod").args([mode, text(path)]).status();
        assert!(changed.unwrap().success());
    };
    fs::create_dir(&state).unwrap();
    mode(&state, "777");
    fails(&check, 1, &[text(&state), "open to other users"]);
    mode(&state, "700");
    let keys = state.join("keys");
    fs::write(&keys, "something else").unwrap();
    mode(&keys, "600");
    fails(&check, 1, &[text(&keys), "remove it"]);
    fs::remove_file(&keys).unwrap();
    assert!(run(&check).status.success());

    write(
        "[[site.route]]\npath = '/*'\nrespond = 'a'\n[[site.route]]\npath = '/api/*'\nrespond = 'b'\n",
    );
    let words = [
        "site.toml:8: path: the route /api/*",
        "never answers: the route /*",
    ];
    fails(&check, 1, &words);
    for (written, words) in [
        (
            "redirect = 'https://example.org$request_uri'\n",
            ["redirect: ", "write {uri}"],
        ),
        (
            "response_headers = { X-Host = '$host' }\n",
            ["X-Host: ", "a variable of nginx"],
        ),
    ] {
        write(&format!("[[site.route]]\npath = '/b'\n{written}"));
        fails(&check, 2, &words);
    }
    fs::write(&config, "dir = '.'\nerror_log = 'error.log warn'\n").unwrap();
    let words = [
        "site.toml:2: error_log: ",
        "\"warn\" is not part of a path",
        "error_log_level",
    ];
    fails(&check, 2, &words);
}

#[test]
fn a_state_that_cannot_be_used_is_named() {
    let root = site();
    let state = TempDir::new().unwrap();
    let keys = state.path().join("keys");
    fs::write(&keys, "something else").unwrap();
    let arguments = ["serve", text(root.path()), "--state", text(state.path())];
    fails(&arguments, 1, &[text(&keys), "open to other users"]);
    let private = Command::new("chmod").args(["600", text(&keys)]).status();
    assert!(private.unwrap().success());
    fails(&arguments, 1, &[text(&keys), "remove it"]);
    let file = root.path().join("a.txt");
    fails(
        &["serve", text(root.path()), "--state", text(&file)],
        1,
        &[text(&file)],
    );
}

#[test]
fn clients_can_trust_the_certificate_that_is_kept() {
    let root = site();
    let state = TempDir::new().unwrap();
    let server = Server::start(&[text(root.path()), "--state", text(state.path())]);
    let printed = server.printed.join("\n");
    let port = server.address.rsplit(':').next().unwrap();
    assert!(printed.contains(&format!("--origin-to-force-quic-on=127.0.0.1:{port} ")));
    let certificate = state.path().join("certificate.pem");
    assert!(printed.contains(text(&certificate)), "{printed}");
    let output = run(&["get", &server.url("a.txt"), "--cacert", text(&certificate)]);
    assert_eq!(output.stdout, b"first", "{output:?}");
}

/// `path` is a symbolic link to `target` now.
fn link(path: &Path, target: &Path) {
    let _ = fs::remove_file(path);
    std::os::unix::fs::symlink(target, path).unwrap();
}

#[test]
fn a_hangup_reads_everything_again_and_keeps_what_works() {
    let (old, new) = (site(), site());
    fs::write(new.path().join("a.txt"), "new").unwrap();
    let place = TempDir::new().unwrap();
    let current = place.path().join("current");
    link(&current, old.path());
    let (config, log) = (place.path().join("site.toml"), place.path().join("log"));
    fs::write(&config, "dir = 'current'\naccess_log = 'log'\n").unwrap();
    let mut server = Server::start(&["--config", text(&config)]);
    let url = server.url("a.txt");
    let get = || run(&["get", &url, "--insecure"]).stdout;
    assert_eq!(get(), b"first");

    link(&current, new.path());
    let rotated = place.path().join("log.1");
    fs::rename(&log, &rotated).unwrap();
    server.signal("-HUP");
    assert!(server.line().contains("read the configuration again"));
    assert_eq!(get(), b"new");

    fs::write(&config, "dir = 'missing'\n").unwrap();
    server.signal("-HUP");
    let line = server.line();
    assert!(
        line.contains("cannot serve") && line.contains("stays as it was"),
        "{line}"
    );
    assert_eq!(get(), b"new");

    fs::write(&config, "dir = 'current'\nmetrics = '127.0.0.1:0'\n").unwrap();
    server.signal("-HUP");
    let line = server.line();
    assert!(
        line.contains("only a restart") && line.contains("metrics"),
        "{line}"
    );
    assert!(server.line().contains("read the configuration again"));
    let (status, rest) = server.terminate();
    assert_eq!((status, rest.lines().count()), (0, 1), "{rest}");
    assert!(rest.contains("SIGTERM: the server stops"), "{rest}");
    // Lines are written behind the requests, all of them before the end.
    let lines = |file| fs::read_to_string(file).unwrap().lines().count();
    assert_eq!((lines(&rotated), lines(&log)), (1, 2));
}

#[test]
fn the_end_of_a_server_is_logged_with_what_it_cuts() {
    let root = site();
    let large = fs::File::create(root.path().join("large")).unwrap();
    large.set_len(64 << 20).unwrap();
    let config = root.path().join("site.toml");
    for (grace, again, ends) in [
        (
            "100ms",
            None,
            "cuts after 0 s: open connections: 1, requests: 1",
        ),
        (
            "1h",
            Some("-INT"),
            "cuts at once: open connections: 1, requests: 1",
        ),
    ] {
        let dir = text(root.path());
        let content = format!("dir = '{dir}'\n[http]\nshutdown_grace = '{grace}'\n");
        fs::write(&config, content).unwrap();
        let mut server = Server::start(&["--config", text(&config)]);
        let mut client = slow_client(&server.url("large"));
        let printed = client.stdout.as_mut().unwrap();
        printed.read_exact(&mut [0; 1]).unwrap();
        server.signal("-TERM");
        let line = server.line();
        assert!(line.contains("SIGTERM: the server stops within"), "{line}");
        assert!(line.contains("open connections: 1, requests: 1"), "{line}");
        if let Some(again) = again {
            server.signal(again);
            let line = server.line();
            assert!(line.contains("SIGINT: the server stops at once"), "{line}");
        }
        let line = server.line();
        assert!(line.contains(ends), "{line}");
        assert!(server.child.wait().unwrap().success());
        client.kill().unwrap();
        client.wait().unwrap();
    }
}

/// A client that has begun to download and is not read.
fn slow_client(url: &str) -> std::process::Child {
    let mut command = crate::marline(&["get", url, "--insecure", "--http", "2", "-o", "-"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// A named pipe without a reader or a writer.
fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_hangup_does_not_wait_for_pipes() {
    let root = site();
    let place = TempDir::new().unwrap();
    let path = |name: &str| place.path().join(name);
    let config = path("site.toml");
    let site = format!("dir = '{}'\n", text(root.path()));
    fs::write(&config, &site).unwrap();
    let mut server = Server::start(&["--config", text(&config)]);
    pipe(&path("pipe"));
    for (more, words) in [
        ("access_log = 'pipe'\n", "no process reads this pipe"),
        ("cert = 'pipe'\nkey = 'pipe'\n", "not a regular file"),
    ] {
        fs::write(&config, format!("{site}{more}")).unwrap();
        server.signal("-HUP");
        let line = server.line();
        assert!(
            line.contains(words) && line.contains("stays as it was"),
            "{line}"
        );
    }
    pipe(&config);
    server.signal("-HUP");
    let line = server.line();
    assert!(
        line.contains("not a regular file") && line.contains("site.toml"),
        "{line}"
    );
    let output = run(&["get", &server.url("a.txt"), "--insecure"]);
    assert_eq!(output.stdout, b"first");
    assert_eq!(server.terminate().0, 0);
}

#[test]
fn what_only_copies_the_state_does_not_stop_the_start() {
    let root = site();
    let state = TempDir::new().unwrap();
    let arguments = [text(root.path()), "--state", text(state.path())];
    let address = Server::start_to_be_replaced(&arguments).address.clone();
    let certificate = state.path().join("certificate.pem");
    let written = fs::read(&certificate).unwrap();
    pipe(&certificate);
    let sessions = format!("sessions-{address}").replace(':', "_");
    let sessions = state.path().join(sessions);
    fs::write(&sessions, "").unwrap();
    Server::start_at(&address, &arguments);
    assert_eq!(fs::read(&certificate).unwrap(), written);
    assert!(!fs::read(&sessions).unwrap().is_empty());
}

#[expect(
    clippy::disallowed_methods,
    reason = "the time that a process takes to end"
)]
#[test]
fn an_access_log_that_stalls_delays_the_end_by_a_second() {
    let root = site();
    let place = TempDir::new().unwrap();
    // More lines than a pipe holds.
    let names: Vec<_> = (100..400)
        .map(|number| "x".repeat(200) + &number.to_string())
        .collect();
    for name in &names {
        fs::write(root.path().join(name), "content").unwrap();
    }
    let (log, fetched) = (place.path().join("log"), TempDir::new().unwrap());
    pipe(&log);
    let reader = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&log)
        .unwrap();
    let server = Server::start(&[text(root.path()), "--access-log", text(&log)]);
    let urls: Vec<_> = names.iter().map(|name| server.url(name)).collect();
    let mut arguments = vec!["get", "--insecure", "-o", text(fetched.path())];
    arguments.extend(urls.iter().map(|url| &**url));
    let output = run(&arguments);
    assert!(output.status.success(), "{output:?}");
    let start = std::time::Instant::now();
    assert_eq!(server.terminate().0, 0);
    let took = start.elapsed();
    assert!(
        took >= Duration::from_millis(900),
        "the log does not stall: {took:?}"
    );
    // Much less than what requests may take, and more than a busy machine does.
    assert!(took < Duration::from_secs(8), "{took:?}");
    drop(reader);
}
