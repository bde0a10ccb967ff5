//! `marline lab link`: its behaviour towards programs and scripts.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const MARLINE: &str = env!("CARGO_BIN_EXE_marline");

fn lab_link(arguments: &[&str]) -> Command {
    let mut command = Command::new(MARLINE);
    command.args(["lab", "link"]).args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Whether this user can make network namespaces on this machine; prints the reason if not.
fn is_supported() -> bool {
    let output = lab_link(&["--link", "rtt=1ms", "--", "true"])
        .output()
        .unwrap();
    let printed = text(&output.stderr);
    if output.status.code() == Some(1) && printed.contains("run as root") {
        println!("skipped: {printed}");
        return false;
    }
    assert!(output.status.success(), "{printed}");
    true
}

fn run(arguments: &[&str]) -> Output {
    lab_link(arguments).output().unwrap()
}

/// A run whose program prints its namespace, and starts a process that outlives it.
fn long_run() -> (Child, String) {
    let program = "readlink /proc/self/ns/net; setsid sleep 1000 & exec sleep 1000";
    let mut child = lab_link(&["--link", "rtt=1ms", "--", "sh", "-c", program])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut namespace = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut namespace)
        .unwrap();
    (child, namespace.trim_end().to_owned())
}

fn has_processes(namespace: &str) -> bool {
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    processes.any(|process| {
        let link = fs::read_link(process.path().join("ns/net"));
        link.is_ok_and(|link| link == Path::new(namespace))
    })
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.unwrap().success());
}

/// Waits until no process is in the namespace; as it has no name, the kernel then removes it with its device.
fn wait_until_removed(namespace: &str) {
    for _ in 0..6_000 {
        if !has_processes(namespace) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("processes are left in {namespace}");
}

#[test]
fn exit_status_is_that_of_the_program() {
    if !is_supported() {
        return;
    }
    for (program, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 128 + 9)] {
        let output = run(&["--link", "rate=7mbps,rtt=2ms", "--", "sh", "-c", program]);
        assert_eq!(output.status.code(), Some(status), "{program}");
        assert_eq!(text(&output.stdout), "", "{program}");
    }
}

#[test]
fn wrong_usage_is_printed_in_one_line() {
    for (arguments, status, word) in [
        (&["--link", "rat=7mbps", "--", "true"][..], 2, "rat"),
        (&["--link", "rate=7", "--", "true"], 2, "7"),
        (&["--link", "rate=7mbps"], 2, "<CMD>"),
        (
            &["--link", "rtt=1ms", "--bound", "x", "--", "true"],
            2,
            "milliseconds",
        ),
    ] {
        let output = run(arguments);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{printed}");
        assert!(
            printed.lines().count() == 1 && printed.contains(word),
            "{printed}"
        );
    }
    if is_supported() {
        let output = run(&["--link", "rtt=1ms", "--", "no-such-program"]);
        assert_eq!(output.status.code(), Some(127));
        assert!(text(&output.stderr).contains("cannot run no-such-program"));
        let output = run(&["--link", "rtt=1ms", "--", "/etc/passwd"]);
        assert_eq!(output.status.code(), Some(126));
    }
}

#[test]
fn the_program_reaches_the_server_over_the_link() {
    if !is_supported() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let site = directory.path().join("site");
    fs::create_dir(&site).unwrap();
    fs::write(site.join("file"), vec![b'x'; 100_000]).unwrap();
    let in_directory = |name: &str| directory.path().join(name).display().to_string();
    let (capture, log, got) = (
        in_directory("c.pcapng"),
        in_directory("log"),
        in_directory("got"),
    );
    let server = format!("{MARLINE} serve --listen 10.77.0.1:4433 {}", site.display());
    let output = run(&[
        "--link",
        "rate=20mbps,rtt=10ms,loss=1%,buffer=100kB",
        "--json",
        "--seed",
        "5",
        "--server",
        &server,
        "--pcap",
        &capture,
        "--log",
        &log,
        "--",
        MARLINE,
        "get",
        "--insecure",
        "https://10.77.0.1:4433/file",
        "-o",
        &got,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read(got).unwrap().len(), 100_000);

    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let (near, far) = (&report["from"]["near"], &report["from"]["far"]);
    assert_eq!(
        (&report["seed"], &report["exit_status"]),
        (&5.into(), &0.into())
    );
    assert!(near["packets"].as_u64() > Some(10), "{report}");
    assert!(far["arrived_bytes"].as_u64() > Some(100_000), "{report}");

    // A section header in the capture, and in the logs a line for each packet that was sent.
    assert_eq!(fs::read(capture).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    for (file, host) in [("up", near), ("down", far)] {
        let log = fs::read_to_string(format!("{log}.{file}")).unwrap();
        let sent = log.lines().filter(|line| line.contains(" + ")).count();
        assert_eq!(Some(sent as u64), host["packets"].as_u64());
        let ended = log.lines().filter(|line| line.contains(" - "));
        assert_eq!(Some(ended.count() as u64), host["arrived_packets"].as_u64());
    }
}

#[test]
fn a_killed_run_leaves_no_namespaces_or_processes() {
    if !is_supported() {
        return;
    }
    let (mut child, namespace) = long_run();
    assert!(has_processes(&namespace));
    signal(&child, "KILL");
    child.wait().unwrap();
    wait_until_removed(&namespace);
}

#[test]
fn a_terminated_run_ends_its_program_first() {
    if !is_supported() {
        return;
    }
    for (name, number) in [("TERM", 15), ("HUP", 15)] {
        let (mut child, namespace) = long_run();
        signal(&child, name);
        // The program received SIGTERM, whichever signal ended the run.
        assert_eq!(child.wait().unwrap().code(), Some(128 + number));
        assert!(!has_processes(&namespace));
    }
}

#[test]
fn without_root_there_is_a_link_or_an_error_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("marline");
    fs::copy(MARLINE, &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["lab", "link", "--link", "rtt=1ms", "--", "true"])
        .output();
    let Ok(output) = output else {
        println!("skipped: there is no setpriv");
        return;
    };
    let printed = text(&output.stderr);
    if printed.starts_with("setpriv:") {
        println!("skipped: {printed}");
        return;
    }
    match output.status.code() {
        Some(0) => assert!(printed.contains("the far end is"), "{printed}"),
        status => {
            assert_eq!(status, Some(1), "{printed}");
            assert!(
                printed.lines().count() == 1 && printed.contains("run as root"),
                "{printed}"
            );
        }
    }
}
