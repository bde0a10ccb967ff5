//! `--signal`.

use std::io::Write;
use std::process::Stdio;

use tempfile::TempDir;

use crate::{Server, fails, marline, site, text};

#[test]
fn a_signal_comes_from_standard_input_while_objects_are_fetched() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let out = TempDir::new().unwrap();
    let url = server.url("a.txt");
    let mut command = marline(&["get", &url, "--insecure", "-o", text(out.path())]);
    command.args(["--pipes", "cba", "--signal", "-"]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may have ended before.
    let _ = child.stdin.take().unwrap().write_all(b"25\n0.5 3\n");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(out.path().join("a.txt")).unwrap(), b"first");
}

#[test]
fn a_radio_that_is_not_there_ends_the_command_with_what_was_looked_for() {
    let get = ["get", "https://h/a", "-o", "/tmp/a", "--pipes", "cba"];
    let wrong = [&get[..], &["--signal", "modem:first"]].concat();
    fails(&wrong, 2, &["--signal", "modem:0"]);
    let wifi = [&get[..], &["--signal", "wifi:none-such"]].concat();
    fails(&wifi, 1, &["--signal wifi:none-such: ", "Wi-Fi"]);
    let zeros = [&get[..], &["--signal", "/dev/zero"]].concat();
    fails(&zeros, 1, &["--signal /dev/zero: ", "no lines"]);
    let mut command = marline(&get);
    command.args(["--signal", "modem"]);
    command.env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    for words in ["--signal modem: ", "ModemManager", "start dbus"] {
        assert!(printed.contains(words), "{printed}");
    }
}
