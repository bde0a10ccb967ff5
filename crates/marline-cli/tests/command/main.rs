//! The output of the command and its exit status.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]
#![expect(
    clippy::zombie_processes,
    reason = "dropping `Server` waits for its process"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use tempfile::TempDir;

#[cfg(target_os = "linux")]
mod attack;
#[cfg(unix)]
mod client_certificates;
#[cfg(feature = "flow")]
mod flow;
#[cfg(feature = "flow")]
mod flow_unattended;
mod formats;
mod get;
mod hints;
mod history;
#[cfg(unix)]
mod lifecycle;
#[cfg(feature = "tracing")]
mod log;
mod output;
mod paths;
mod proxies;
mod qlog;
mod refusals;
mod requests;
#[cfg(target_os = "linux")]
mod service;
#[cfg(target_os = "linux")]
mod signal;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(unix)]
mod stapling;
#[cfg(target_os = "linux")]
mod upgrade;
#[cfg(target_os = "linux")]
mod upgrade_steps;
mod upstreams;

fn marline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.args(arguments);
    // Not the state directory of the user who runs the tests.
    command.env_remove("STATE_DIRECTORY");
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn run(arguments: &[&str]) -> Output {
    marline(arguments).output().unwrap()
}

/// Runs and expects this status and one line that contains `words`.
#[track_caller]
fn fails(arguments: &[&str], status: i32, words: &[&str]) {
    let output = run(arguments);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{printed}");
    assert_eq!(printed.lines().count(), 1, "one line: {printed}");
    assert!(printed.starts_with("marline: "), "{printed}");
    for word in words {
        assert!(printed.contains(word), "`{word}` in {printed}");
    }
}

/// A `marline serve` on a free port.
struct Server {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    address: String,
    pin: String,
    /// Its output before it was ready.
    printed: Vec<String>,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// A server that another will take the place of: no other test binds a port of its address meanwhile.
    fn start_to_be_replaced(arguments: &[&str]) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let host = NEXT.fetch_add(1, Relaxed);
        Self::start_at(&format!("127.7.0.{host}:0"), arguments)
    }

    fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut command = marline(&["serve", "--listen", address]);
        Self::spawn(command.args(arguments).stdout(Stdio::null()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut pin, mut line) = (String::new(), String::new());
        let mut printed = Vec::new();
        loop {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended");
            if let Some((_, found)) = line.trim().split_once("spki-list=") {
                pin = found.to_owned();
            }
            if let Some(address) = line.trim().strip_prefix("listening on https://") {
                let address = address.to_owned();
                return Self {
                    child,
                    stderr,
                    address,
                    pin,
                    printed,
                };
            }
            printed.push(line.trim().to_owned());
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }

    fn terminate(mut self) -> (i32, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (status.code().unwrap_or(-1), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn site() -> TempDir {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("a.txt"), "first").unwrap();
    fs::write(root.path().join("b.txt"), "second").unwrap();
    root
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn help_explains_profiles_published_values_and_digests() {
    let help = |arguments: &[&str]| {
        let output = marline(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let run = help(&["lab", "run", "--help"]);
    assert!(
        run.contains("`published` has the value in the paper"),
        "{run}"
    );
    for arguments in [&["lab", "run", "--help"], &["lab", "compare", "--help"]] {
        let text = help(arguments);
        assert!(text.contains("a hash of all metrics of all runs"), "{text}");
    }
    let serve = help(&["serve", "--help"]);
    assert!(
        serve.contains("multipath: the default, and a connection may use several paths"),
        "{serve}"
    );
}

#[test]
fn http3_is_announced_at_the_port_that_the_client_has_reached() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let (_, own) = server.address.rsplit_once(':').unwrap();
    let own = format!("h3=\":{own}\"");
    for (host, expected) in [
        ("a.test:8443", "h3=\":8443\""),
        ("a.test", "h3=\":443\""),
        (&*server.address, &own),
    ] {
        for version in ["1.1", "2"] {
            let host = format!("Host: {host}");
            let url = server.url("a.txt");
            let arguments = [
                "get",
                &url,
                "--insecure",
                "--http",
                version,
                "-i",
                "-H",
                &host,
            ];
            let printed = String::from_utf8(run(&arguments).stdout).unwrap();
            let printed = printed.to_lowercase();
            assert!(
                printed.contains(&format!("alt-svc: {expected};")),
                "{printed}"
            );
        }
    }
}

#[test]
fn files_are_transferred_over_every_http_version() {
    let root = site();
    let out = TempDir::new().unwrap();
    let log = out.path().join("access.log");
    let qlog = out.path().join("qlog");
    let arguments = [
        text(root.path()),
        "--cleartext",
        "--access-log",
        text(&log),
        "--qlog",
        text(&qlog),
    ];
    let server = Server::start(&arguments);
    assert_eq!(server.pin.len(), 44, "SHA-256 in base64: {}", server.pin);
    for version in ["3", "2", "1.1"] {
        let url = server.url("a.txt");
        let output = run(&["get", &url, "--insecure", "--http", version]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"first", "HTTP/{version}");
    }
    let clear = server.url("a.txt").replace("https", "http");
    let output = run(&["get", &clear, "--http", "1.1c"]);
    assert_eq!(output.stdout, b"first");

    let directory = out.path().join("files");
    let (a, b) = (server.url("a.txt"), server.url("b.txt"));
    let output = run(&[
        "get",
        &a,
        &b,
        "--insecure",
        "--http",
        "3",
        "-o",
        text(&directory),
        "--connections",
        "2",
        "--json",
    ]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(directory.join("b.txt")).unwrap(), b"second");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["objects"][0]["bytes"], 5);
    assert_eq!(report["objects"][1]["http_version"], "3");
    assert_eq!(report["objects"][0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(report["connections"].as_array().unwrap().len(), 2);
    for key in [
        "id",
        "http_version",
        "handshake_s",
        "bytes_received",
        "packets_lost_observed",
    ] {
        assert!(report["connections"][0].get(key).is_some(), "{key}");
    }
    assert!(report["connections"][0]["paths"][0]["rtt_s"].is_f64());
    assert!(report["page_load_s"].is_f64());

    let (status, rest) = server.terminate();
    assert_eq!((status, rest.lines().count()), (0, 1), "{rest}");
    assert!(rest.contains("SIGTERM: the server stops"), "{rest}");
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 6);

    let logs: Vec<_> = fs::read_dir(&qlog)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(logs.len(), 3, "one log per QUIC connection: {logs:?}");
    let summary = run(&["qlog", "summary", "--json", text(&logs[0])]);
    assert!(summary.status.success(), "{summary:?}");
    serde_json::from_slice::<serde_json::Value>(&summary.stdout).unwrap();
}

#[test]
fn either_end_can_choose_the_version_of_quic() {
    let root = site();
    let out = TempDir::new().unwrap();
    for (serve, get, chosen) in [
        (None, None, "00000001"),
        (None, Some("v2"), "6b3343cf"),
        (Some("v2"), None, "6b3343cf"),
        (Some("v1"), Some("v2"), "00000001"),
    ] {
        let qlog = out.path().join(format!("{serve:?}-{get:?}"));
        let flag = |version| match version {
            Some(version) => vec!["--quic-version", version],
            None => Vec::new(),
        };
        let served = [text(root.path())];
        let server = Server::start(&[&served[..], &flag(serve)].concat());
        let url = server.url("a.txt");
        let fetched = ["get", &url, "--insecure", "--qlog", text(&qlog)];
        let output = run(&[&fetched[..], &flag(get)].concat());
        assert_eq!(output.stdout, b"first", "{output:?}");
        let reported = ["get", &url, "--insecure", "--json"];
        let output = run(&[&reported[..], &flag(get)].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let version = if chosen == "00000001" { "v1" } else { "v2" };
        assert_eq!(report["connections"][0]["quic_version"], version);
        let log = fs::read_dir(&qlog).unwrap().next().unwrap().unwrap().path();
        let log = fs::read_to_string(log).unwrap();
        let expected = format!("\"chosen_version\":\"{chosen}\"");
        assert!(
            log.contains(&expected),
            "{expected} of {serve:?} and {get:?}"
        );
    }
}

#[test]
fn a_bundle_splits_large_objects_over_its_connections() {
    let root = site();
    let large: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(root.path().join("large"), &large).unwrap();
    let out = TempDir::new().unwrap();
    let file = out.path().join("file");
    for (profile, coordinated) in [("bundle", true), ("default", false)] {
        let server = Server::start(&[text(root.path()), "--profile", profile]);
        let (small, url) = (server.url("a.txt"), server.url("large"));
        for ranges in ["auto", "equal", "handed"] {
            let get = ["get", &url, "--insecure", "-o", text(&file), "--bundle"];
            let split = ["--split", "262144", "--ranges", ranges, "--json"];
            let output = run(&[&get[..], &split].concat());
            assert!(output.status.success(), "{output:?}");
            assert!(fs::read(&file).unwrap() == large, "{ranges}");
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["bundle"], coordinated);
            let connections = report["connections"].as_array().unwrap();
            assert_eq!(connections.len(), 3);
            let received = connections
                .iter()
                .map(|connection| connection["bytes_received"].as_u64().unwrap());
            assert!(received.clone().sum::<u64>() >= large.len() as u64);
            // The others give the range of a connection that does not answer to those that do.
            assert!(ranges != "equal" || received.min() > Some(0), "{report}");
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(
                printed.contains("does not coordinate"),
                !coordinated,
                "{printed}"
            );
        }
        // Over one path ranges gain nothing unless the credit of a connection is too small for the object.
        for (own_sockets, connections) in [(&[][..], 1), (&["--own-sockets"], 3)] {
            let get = [
                "get",
                &url,
                "--insecure",
                "-o",
                text(&file),
                "--bundle",
                "--json",
            ];
            let report = run(&[&get[..], own_sockets].concat()).stdout;
            let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
            assert_eq!(report["connections"].as_array().unwrap().len(), connections);
        }
        let get = ["get", &small, "--insecure", "-o", text(&file), "--bundle"];
        assert!(run(&get).status.success());
        assert_eq!(fs::read(&file).unwrap(), b"first");
        let get = ["get", &small, "--insecure", "-o", text(&file), "--json"];
        let report: serde_json::Value = serde_json::from_slice(&run(&get).stdout).unwrap();
        assert_eq!(report["bundle"], false, "it was not requested");
    }
}

#[test]
fn errors_of_get_are_printed_in_one_line() {
    let root = site();
    let out = TempDir::new().unwrap();
    let server = Server::start(&[text(root.path())]);
    let (url, missing) = (server.url("a.txt"), server.url("missing"));
    for version in ["3", "2"] {
        fails(
            &["get", &url, "--http", version],
            60,
            &["certificate", "--insecure"],
        );
        fails(
            &["get", &missing, "--insecure", "--http", version],
            22,
            &["404"],
        );
    }
    let target = out.path().join("no/such/directory/file");
    fails(
        &["get", &url, "--insecure", "-o", text(&target)],
        23,
        &["cannot write", "directory"],
    );
    fails(
        &["get", &url, "--insecure", "-o", "/dev/full/x"],
        23,
        &["cannot write"],
    );
    fails(
        &["get", &url, "--cacert", text(&target)],
        77,
        &["trusted certificates", "PEM"],
    );
    fails(
        &["get", "https://host.invalid/", "--http", "2"],
        6,
        &["host.invalid", "check"],
    );
    assert_eq!(
        fs::read_dir(out.path()).unwrap().count(),
        0,
        "no file remains"
    );

    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("https://{closed}/");
    fails(
        &["get", &url, "--insecure", "--http", "1.1"],
        7,
        &["cannot reach", "--http"],
    );
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    fails(&["get", &url, "--insecure", "--http", "3"], 28, &["--http"]);
}

#[test]
fn wrong_usage_is_one_line_and_exit_status_2() {
    for (arguments, words) in [
        (
            &["get", "https://h/", "--frobnicate"][..],
            &["--frobnicate"][..],
        ),
        (&["get"], &["URL"]),
        (&["get", "https://h/", "--http", "4"], &["4"]),
        (
            &["get", "https://h/", "--connections", "0"],
            &["connections"],
        ),
        (
            &["get", "https://h/", "--header", "nonsense"],
            &["Name: value"],
        ),
        (
            &["get", "https://h/x", "https://g/x", "-o", "/tmp/"],
            &["two URLs"],
        ),
        (
            &[
                "get",
                "https://h/a",
                "-o",
                "/tmp/a",
                "--bundle",
                "--http",
                "2",
            ],
            &["--bundle needs HTTP/3, not HTTP/2"],
        ),
        (&["get", "https://h/a", "--bundle"], &["-o FILE"]),
        (
            &["get", "https://h/a", "--ranges", "odd"],
            &["odd", "auto, equal, handed"],
        ),
        (
            &[
                "get",
                "https://h/a",
                "-o",
                "/tmp/a",
                "--bundle",
                "--connections",
                "17",
            ],
            &["up to 16", "17"],
        ),
        (&["serve"], &["DIR"]),
        (&["serve", ".", "--listen", "nowhere"], &["nowhere"]),
        (&["serve", ".", "--cert", "x"], &["--key"]),
        (&["serve", "--config", "/no/such/file"], &["cannot read"]),
        (&["frobnicate"], &["frobnicate"]),
        (&["man", "frobnicate"], &["frobnicate"]),
        (&["completions", "tcsh"], &["tcsh"]),
    ] {
        fails(arguments, 2, words);
    }
    fails(
        &["get", "ftp://example.org/"],
        1,
        &["only http:// and https://"],
    );
    fails(&[], 2, &["marline --help"]);
    fails(&["qlog"], 2, &["marline qlog --help"]);
}

#[test]
fn parameters_of_policies_are_refused_outside_of_them_with_what_to_write() {
    for (set, words) in [
        (
            "hybrid.factor=0.5",
            "write slow_start_exit=\"hybrid(factor=0.5)\"",
        ),
        ("slow_start_exit.factor=0.5", "as \"hybrid(factor=0.5)\""),
        (
            "ecf.beta=0.3",
            "write multipath.scheduler=\"ecf(beta=0.3)\"",
        ),
        ("initial_window=careful", "--profile history"),
        (
            "initial_window=10",
            "write initial_window=\"fixed(packets=10)\"",
        ),
    ] {
        fails(&["get", "https://localhost/", "--set", set], 2, &[words]);
    }
}

#[test]
fn files_that_are_no_results_and_no_logs_are_refused_as_such() {
    let root = tempfile::tempdir().unwrap();
    let directory = text(root.path());
    let file = root.path().join("notes.txt");
    fs::write(&file, "notes\n").unwrap();
    let (file, missing) = (text(&file), root.path().join("missing"));
    let missing = text(&missing);
    for (path, words) in [
        (missing, "it does not exist"),
        (file, "it is not a directory"),
        (directory, "it has no "),
    ] {
        let what = "give a directory of `marline lab run`";
        fails(&["lab", "compare", path, path], 1, &[words, what]);
        fails(&["lab", "report", path], 1, &[words, what]);
        fails(&["lab", "merge", "--out", missing, path], 1, &[words, what]);
    }
    for (path, words) in [
        (missing, "check the path"),
        (directory, "name the files in it"),
        (file, "has no event of qlog: record 1: not JSON"),
    ] {
        fails(&["qlog", "summary", path], 1, &[words]);
    }
}

#[test]
fn errors_of_serve_are_printed_in_one_line() {
    let root = site();
    let directory = text(root.path());
    let file = root.path().join("a.txt");
    fails(
        &["serve", "/no/such/directory"],
        1,
        &["cannot serve", "directory"],
    );
    fails(&["serve", text(&file)], 1, &["cannot serve"]);
    let pem = [
        "serve",
        directory,
        "--cert",
        text(&file),
        "--key",
        text(&file),
    ];
    fails(&pem, 1, &["PEM"]);

    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (root.path().join("cert.pem"), root.path().join("key.pem"));
    fs::write(&cert, identity.cert.pem()).unwrap();
    fs::write(&key, identity.signing_key.serialize_pem()).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let with_identity = [
        "serve",
        directory,
        "--cert",
        text(&cert),
        "--key",
        text(&key),
    ];
    let listen = [&with_identity[..], &["--listen", &address]].concat();
    fails(&listen, 1, &["cannot listen", "another"]);

    // A client that trusts the certificate accepts it.
    let server = Server::start(&with_identity[1..]);
    let url = server.url("a.txt").replace("127.0.0.1", "localhost");
    for version in ["3", "2"] {
        let output = run(&["get", &url, "--cacert", text(&cert), "--http", version]);
        assert!(output.status.success(), "{output:?}");
    }
    fails(
        &["get", &server.url("a.txt"), "--cacert", text(&cert)],
        60,
        &["certificate"],
    );

    let config = root.path().join("site.toml");
    fs::write(&config, "dir = '.'\nlissen = ''\n").unwrap();
    fails(
        &["serve", "--config", text(&config)],
        2,
        &["site.toml:2:", "lissen"],
    );
    fs::write(&config, "dir = '.'\n[bundle]\nfare = true\n").unwrap();
    fails(
        &["serve", "--config", text(&config)],
        2,
        &["site.toml:3:", "fare"],
    );
    for (set, words) in [
        ("receive_windw=4MB", "did you mean receive_window? See `"),
        (
            "slow_start_exit=hybrid(factor=11)",
            "a number from 0 to 10, not 11",
        ),
        ("bundle.scope=some", "known: all, active"),
        ("receive_window", "KEY=VALUE"),
    ] {
        fails(&["serve", ".", "--set", set], 2, &[words]);
    }
    fs::write(&config, "dir = '.'\nlisten = '127.0.0.1:0'\n[bundle]\n").unwrap();
    let server = Server::start(&["--config", text(&config)]);
    assert!(
        run(&["get", &server.url("b.txt"), "--insecure"])
            .status
            .success()
    );
}

#[test]
fn an_interrupted_get_leaves_no_partial_file() {
    let root = site();
    let out = TempDir::new().unwrap();
    let big = fs::File::create(root.path().join("big")).unwrap();
    big.set_len(20 << 30).unwrap();
    let server = Server::start(&[text(root.path())]);
    let target = out.path().join("big");
    let mut child = marline(&["get", &server.url("big"), "--insecure", "-o", text(&target)])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let part = out.path().join(".big.part");
    while !fs::metadata(&part).is_ok_and(|part| part.len() > 1 << 20) {
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(child.try_wait().unwrap().is_none());
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("interrupted")
    );
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn presets_are_verified() {
    let verified = run(&["lab", "verify", "ecmp"]);
    let table = String::from_utf8(verified.stdout).unwrap();
    assert!(verified.status.success(), "{table}");
    assert_eq!(
        table.lines().filter(|line| line.contains(" ok ")).count(),
        5
    );
    let verified = run(&["lab", "verify", "ecmp", "--json", "--seed", "2"]);
    let json = String::from_utf8(verified.stdout).unwrap();
    assert!(
        verified.status.success() && json.contains("\"passed\": true"),
        "{json}"
    );
    fails(
        &["lab", "verify", "lte-b"],
        2,
        &["lte-b", "lte-a", "wifi-7"],
    );
}

#[test]
fn help_version_and_manual_pages_are_printed() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    for verb in ["serve", "get", "qlog", "reference", "completions", "man"] {
        assert!(String::from_utf8_lossy(&help.stdout).contains(verb));
        let help = run(&[verb, "--help"]);
        assert!(help.status.success());
        let page = run(&["man", verb]);
        assert!(
            page.status.success() && page.stdout.starts_with(b".ie"),
            "{page:?}"
        );
    }
    let get = String::from_utf8(run(&["get", "--help"]).stdout).unwrap();
    assert!(get.contains("Examples:") && get.contains("--resume"));
    assert!(get.contains("-o image.iso --bundle"), "{get}");
    let serve = String::from_utf8(run(&["serve", "--help"]).stdout).unwrap();
    assert!(serve.contains("[bundle]") && serve.contains("fair = true"));
    assert!(get.contains("--path wwan0,backup,cap=10MB") && get.contains("--scheduler"));
    assert!(serve.contains("[multipath]") && serve.contains("max_paths"));
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert!(
            String::from_utf8(script.stdout)
                .unwrap()
                .contains("access-log"),
            "{shell}"
        );
    }
}

#[test]
fn text_is_compressed_by_serve_unless_it_is_off() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("a.txt"), "text ".repeat(1000)).unwrap();
    let config = root.path().join("site.toml");
    fs::write(&config, "compress = false\n").unwrap();
    let encoding = |arguments: &[&str]| {
        let server = Server::start(&[&[text(root.path()), "--cleartext"], arguments].concat());
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request = "GET /a.txt HTTP/1.1\r\nhost: localhost\r\naccept-encoding: br, gzip\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let fields = answer.split("\r\n\r\n").next().unwrap();
        fields
            .lines()
            .find_map(|line| line.strip_prefix("content-encoding: "))
            .map(str::to_owned)
    };
    assert_eq!(encoding(&[]).as_deref(), Some("br"));
    assert_eq!(encoding(&["--compress", "off"]), None);
    assert_eq!(encoding(&["--config", text(&config)]), None);
    assert_eq!(
        encoding(&["--config", text(&config), "--compress", "on"]).as_deref(),
        Some("br")
    );
}
