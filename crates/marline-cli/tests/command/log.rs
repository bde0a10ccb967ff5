//! `--log`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use tempfile::TempDir;

use crate::{Server, fails, run, site, text};

#[test]
fn both_ends_log_a_connection_and_only_if_asked() {
    let root = site();
    let server = Server::start(&[text(root.path()), "--log", "info"]);
    let url = server.url("a.txt");
    let silent = run(&["get", &url, "--insecure", "--http", "3"]);
    assert_eq!(String::from_utf8(silent.stderr).unwrap(), "");

    let output = run(&[
        "get",
        &url,
        "--insecure",
        "--http",
        "3",
        "--log",
        "info,marline::keys=debug",
    ]);
    assert_eq!(output.stdout, b"first");
    let printed = String::from_utf8(output.stderr).unwrap();
    let has = |printed: &str, words: [&str; 3]| {
        let mut lines = printed.lines();
        lines.any(|line| words.iter().all(|word| line.contains(word)))
    };
    let client = "connection{side=\"client\"";
    assert!(
        has(&printed, ["marline::connection", client, "started"]),
        "{printed}"
    );
    assert!(
        has(&printed, ["marline::connection", client, "closed"]),
        "{printed}"
    );
    assert!(
        has(&printed, ["marline::keys", client, "keys available"]),
        "{printed}"
    );
    assert!(!printed.contains("marline::packet"), "{printed}");

    let (status, printed) = server.terminate();
    assert_eq!(status, 0, "{printed}");
    let server = "connection{side=\"server\"";
    assert!(
        has(&printed, ["marline::connection", server, "started"]),
        "{printed}"
    );
    assert!(!printed.contains("marline::keys"), "{printed}");
}

#[test]
fn a_level_that_does_not_exist_is_refused() {
    fails(
        &["serve", ".", "--log", "loud"],
        2,
        &["loud", "debug", "--log"],
    );
    let root = TempDir::new().unwrap();
    let file = root.path().join("site.toml");
    fs::write(&file, "dir = '.'\nlog = 'loud'\n").unwrap();
    fails(
        &["serve", "--config", text(&file)],
        2,
        &["site.toml:2", "loud", "debug"],
    );
}

#[test]
fn a_balancer_without_a_header_of_the_proxy_protocol_is_in_the_error_log() {
    let root = site();
    let place = TempDir::new().unwrap();
    let config = place.path().join("site.toml");
    let settings = format!(
        "dir = '{}'\ntrusted_proxies = ['127.0.0.0/8']\nproxy_protocol = true\nerror_log = 'errors'\nerror_log_level = 'information'\n",
        text(root.path())
    );
    fs::write(&config, settings).unwrap();
    let server = Server::start(&["--config", text(&config)]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(&[b'7'; 200]).unwrap();
    // The server closes the connection, or resets it with what it has not read.
    let _ = stream.read_to_end(&mut Vec::new());
    // As a balancer's check does.
    drop(TcpStream::connect(&server.address).unwrap());
    assert_eq!(server.terminate().0, 0);
    let log = fs::read_to_string(place.path().join("errors")).unwrap();
    let about: Vec<_> = log.lines().filter(|line| line.contains("PROXY")).collect();
    let expected = "no header of the PROXY protocol can be read from 127.0.0.1";
    assert!(about.len() == 1 && about[0].contains(expected), "{log}");
}
