//! `--log`.

use std::fs;

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
