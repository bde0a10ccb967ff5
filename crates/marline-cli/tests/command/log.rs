//! `--log`.

use std::fs;

use tempfile::TempDir;

use crate::{Server, fails, run, site, text};

#[test]
fn both_ends_log_a_connection_and_only_if_asked() {
    let root = site();
    let server = Server::start(&[text(root.path()), "--log", "info"]);
    let url = server.url("a.txt");
    let silent = run(&["get", &url, "--insecure"]);
    assert_eq!(String::from_utf8(silent.stderr).unwrap(), "");

    let output = run(&[
        "get",
        &url,
        "--insecure",
        "--log",
        "info,marline::keys=debug",
    ]);
    assert_eq!(output.stdout, b"first");
    let said = String::from_utf8(output.stderr).unwrap();
    let has = |said: &str, words: [&str; 3]| {
        let mut lines = said.lines();
        lines.any(|line| words.iter().all(|word| line.contains(word)))
    };
    let client = "connection{side=\"client\"";
    assert!(
        has(&said, ["marline::connection", client, "started"]),
        "{said}"
    );
    assert!(
        has(&said, ["marline::connection", client, "closed"]),
        "{said}"
    );
    assert!(
        has(&said, ["marline::keys", client, "keys available"]),
        "{said}"
    );
    assert!(!said.contains("marline::packet"), "{said}");

    let (status, said) = server.terminate();
    assert_eq!(status, 0, "{said}");
    let server = "connection{side=\"server\"";
    assert!(
        has(&said, ["marline::connection", server, "started"]),
        "{said}"
    );
    assert!(!said.contains("marline::keys"), "{said}");
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
