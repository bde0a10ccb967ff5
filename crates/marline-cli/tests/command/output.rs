//! Standard output that cannot be written to, from the start or later.

use std::fs;
use std::process::Stdio;

use tempfile::TempDir;

use crate::{Server, marline, site, text};

/// The exit status if standard output cannot be written.
const UNWRITTEN: Option<i32> = Some(23);

/// The command line of every kind of output that needs no server.
fn printing(log: &str) -> Vec<Vec<&str>> {
    let mut lines = vec![
        vec!["--help"],
        vec!["--version"],
        vec!["get", "--help"],
        vec!["reference", "settings"],
        vec!["completions", "bash"],
        vec!["man", "get"],
        vec!["qlog", "summary", log],
        vec!["qlog", "summary", "--json", log],
        vec!["qlog", "convert", "--for", "qvis", log, "-"],
    ];
    if cfg!(target_os = "linux") {
        lines.extend([
            vec!["lab", "presets"],
            vec!["lab", "list"],
            vec!["lab", "list", "--json"],
        ]);
    }
    lines
}

/// A qlog file in a directory.
fn log() -> (TempDir, String) {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let logs = TempDir::new().unwrap();
    let url = server.url("a.txt");
    let output = marline(&["get", &url, "--insecure", "--qlog", text(logs.path())]).output();
    assert!(output.unwrap().status.success());
    let log = fs::read_dir(logs.path()).unwrap().next().unwrap();
    let log = text(&log.unwrap().path()).to_owned();
    (logs, log)
}

/// A pipe whose reader has gone.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Checks that a command with this standard output ends with a line about it.
fn assert_fails(arguments: &[&str], out: Stdio) {
    let output = marline(arguments).stdout(out).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), UNWRITTEN, "{arguments:?}: {printed}");
    let expected = "marline: cannot write to standard output: ";
    assert!(printed.starts_with(expected), "{arguments:?}: {printed}");
    assert_eq!(printed.lines().count(), 1, "{arguments:?}: {printed}");
}

#[test]
fn what_a_reader_does_not_read_is_a_failure() {
    let (_logs, log) = log();
    for arguments in printing(&log) {
        assert_fails(&arguments, unread());
    }
}

#[test]
fn content_that_a_reader_does_not_read_is_a_failure() {
    let root = site();
    fs::write(root.path().join("large"), vec![b'x'; 1 << 20]).unwrap();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("large");
    for version in ["3", "2", "1.1"] {
        let get = ["get", &url, "--insecure", "--http", version];
        for more in [&[][..], &[&*url], &["--json"], &["-o", "-"]] {
            assert_fails(&[&get[..], more].concat(), unread());
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_a_failure() {
    let full = || Stdio::from(fs::File::create("/dev/full").unwrap());
    let (_logs, log) = log();
    for arguments in printing(&log) {
        assert_fails(&arguments, full());
    }
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("a.txt");
    for more in [&[][..], &["--json"], &["-o", "/dev/stdout"]] {
        assert_fails(&[&["get", &url, "--insecure"], more].concat(), full());
    }
}
