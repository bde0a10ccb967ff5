//! The backend `kernel`, and `marline lab link` in it: `make virtual-time` runs these, because they need what `make kernel`
//! builds.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const MARLINE: &str = env!("CARGO_BIN_EXE_marline");

/// Two flows of the kernel's TCP, each alone, with losses.
const TCP: &str = r#"
title = "TCP"
link = "rate=5mbps, rtt=40ms, loss=0.5%, buffer=40kB"
backend = "kernel"
repeats = 2
http.connections = 0
workload.measure = { after = "200ms", until = "1500ms" }
[[background]]
kind = "tcp"
[variant.cubic]
"background.1.cc" = "cubic"
[variant.bbr]
"background.1.cc" = "bbr"
"#;

/// Our QUIC in the same kernel, and in the simulator.
const QUIC: &str = r#"
title = "QUIC"
link = "rate=10mbps, rtt=40ms, loss=1%"
repeats = 2
workload.objects = ["100kB"]
[variant.kernel]
backend = "kernel"
[variant.sim]
backend = "sim"
"#;

/// Reads the clock as the C library does, and by system calls, in two processes that take turns.
const CLOCK: &str = r#"
import ctypes, os, time

assert os.uname().release.endswith("-marline"), "it sets the clock"

class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

syscall = ctypes.CDLL(None).syscall

def asked():
    now = Timespec()
    assert syscall(228, time.CLOCK_MONOTONIC, ctypes.byref(now)) == 0
    return now.seconds * 10**9 + now.nanoseconds

last = 0
def follows(now):
    global last
    assert now >= last, (now, last)
    last = now

for number in range(1000):
    follows(asked() if number % 7 == 0 else time.monotonic_ns())
start = time.monotonic()
while time.monotonic() < start + 0.0001:
    pass
start = time.monotonic_ns()
time.sleep(10)
assert 0 <= time.monotonic_ns() - start - 10**10 < 10**6
time.clock_settime(time.CLOCK_REALTIME, 1_900_000_000)
assert 0 <= time.time() - 1_900_000_000 < 0.001

to_child, to_parent = os.pipe(), os.pipe()
child = os.fork()
receive, send = (to_child[0], to_parent[1]) if child == 0 else (to_parent[0], to_child[1])
for turn in range(100):
    if turn > 0 or child == 0:
        follows(int(os.read(receive, 100)))
    follows(time.monotonic_ns())
    os.write(send, b"%d" % last)
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(last)
"#;

/// A run that lasts longer than a test waits.
const LONG: &str = r#"
title = "long"
link = "rate=50mbps, rtt=10ms"
backend = "kernel"
repeats = 1
http.connections = 0
workload.measure = { after = "1s", until = "1000s" }
time_limit = "2000s"
[[background]]
kind = "tcp"
"#;

fn lab(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(MARLINE);
    command.arg("lab").args(arguments).current_dir(directory);
    // Machines would leave their files here.
    command.env("TMPDIR", directory.join("tmp"));
    command
}

/// `marline lab link` in virtual time: a link, and further arguments.
fn link(directory: &Path, arguments: &[&str]) -> Command {
    let virtually = ["link", "--backend", "kernel", "--link"];
    lab(directory, &[&virtually, arguments].concat())
}

/// A directory with a scenario; `None`, with the reason printed, where there is no kernel.
fn scenario(text: &str) -> Option<TempDir> {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("tmp")).unwrap();
    fs::write(directory.path().join("scenario.toml"), text).unwrap();
    let output = link(directory.path(), &["rtt=1ms", "--", "true"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    if printed.contains("make kernel") {
        println!("skipped: {}", printed.trim());
        return None;
    }
    assert!(output.status.success(), "{printed}");
    Some(directory)
}

/// The results of a run of the scenario, as JSON.
fn results(directory: &Path, arguments: &[&str]) -> Value {
    let all = [&["run", "scenario.toml", "--json"], arguments].concat();
    let Output {
        status,
        stdout,
        stderr,
    } = lab(directory, &all).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

/// The median of a metric of a variant.
fn median(results: &Value, variant: &str, metric: &str) -> f64 {
    let cells = results["cells"].as_array().unwrap();
    let cell = cells
        .iter()
        .find(|cell| cell["variant"] == variant)
        .unwrap();
    let median = cell["metrics"][metric]["median"].as_f64();
    median.unwrap_or_else(|| panic!("{metric} of {variant}: {cell}"))
}

/// Waits for up to a minute until no process works in a temporary directory of a machine; returns
/// whether that was so.
fn machines_end(directory: &Path) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while machines(directory) > 0 {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// The number of processes that work in temporary directories of machines.
fn machines(directory: &Path) -> usize {
    let temporary = directory.join("tmp").canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let places = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(&temporary)).count()
}

fn left(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory.join("tmp")).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn runs_of_the_kernels_tcp_are_equal_over_repeats_and_jobs() {
    let Some(directory) = scenario(TCP) else {
        return;
    };
    let here = directory.path();
    let one = results(here, &["--out", "one", "--jobs", "1"]);
    let two = results(here, &["--out", "two", "--jobs", "2"]);
    assert_eq!(one["backend"], "kernel");
    assert_eq!(one["digest"], two["digest"]);
    for variant in ["cubic", "bbr"] {
        let goodput = median(&one, variant, "background_goodput_mbps");
        assert!((1.0..5.0).contains(&goodput), "{variant}: {goodput}");
    }
    assert_eq!(
        one["settings"]["variants"]["bbr"]["background"][0]["traffic"]["tcp"]["run_by"],
        "iperf3"
    );
    let other = results(here, &["--out", "other", "--seed", "2"]);
    assert_ne!(other["digest"], one["digest"]);
    assert_eq!(left(here), Vec::<String>::new());
}

#[test]
fn a_run_finds_its_directory_again_where_the_machine_mounts_something_else() {
    let Some(directory) = scenario(TCP) else {
        return;
    };
    let Ok(hidden) = TempDir::new_in("/dev/shm") else {
        println!("skipped: there is no /dev/shm");
        return;
    };
    let run = ["run", "scenario.toml", "--repeats", "1", "--json"];
    let output = lab(directory.path(), &run)
        .env("TMPDIR", hidden.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!directory.path().join("status").exists());
}

#[test]
fn the_clock_is_the_same_for_all_who_read_it() {
    let Some(directory) = scenario(TCP) else {
        return;
    };
    let printed = || {
        let program = ["rtt=1ms", "--", "python3", "-c", CLOCK];
        let output = link(directory.path(), &program).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        output.stdout
    };
    assert_eq!(printed(), printed());
}

#[test]
fn quic_on_the_kernel_is_repeatable_and_close_to_the_simulator() {
    let Some(directory) = scenario(QUIC) else {
        return;
    };
    let here = directory.path();
    let one = results(here, &["--out", "one"]);
    let again = results(here, &["--out", "again"]);
    assert_eq!(one["digest"], again["digest"]);
    assert_eq!(one["backend"], "sim+kernel");
    let [kernel, sim] = ["kernel", "sim"].map(|name| median(&one, name, "completion_s"));
    assert!((kernel / sim - 1.0).abs() < 0.25, "{kernel} and {sim} s");
}

/// Starts the scenario, waits until `count` processes of a machine are there and `more` has passed, sends the signal, and
/// returns the status with which the laboratory ends.
fn interrupt(here: &Path, signal: &str, count: usize, more: Duration) -> Option<i32> {
    let mut running = lab(here, &["run", "scenario.toml", "--out", "long"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while machines(here) < count {
        assert!(Instant::now() < deadline, "no machine has started");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(more);
    let id = running.id().to_string();
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &id])
        .status();
    assert!(sent.unwrap().success());
    running.wait().unwrap().code()
}

#[test]
fn an_interrupt_ends_the_machine_and_the_run_is_done_again() {
    let Some(directory) = scenario(LONG) else {
        return;
    };
    let here = directory.path();
    for (signal, status) in [("INT", Some(1)), ("KILL", None)] {
        assert_eq!(interrupt(here, signal, 2, Duration::ZERO), status);
        assert!(machines_end(here), "machines are left after SIG{signal}");
        let runs = fs::read_to_string(here.join("long/runs.jsonl")).unwrap();
        assert_eq!(runs, "", "an interrupted run has no result");
    }
}

/// While it starts, a machine has processes that are stopped.
#[test]
fn a_machine_that_starts_is_ended_too() {
    let Some(directory) = scenario(LONG) else {
        return;
    };
    let here = directory.path();
    for after in 0..20 {
        let status = interrupt(here, "KILL", 1, Duration::from_millis(after));
        assert_eq!(status, None, "it ended by itself");
        assert!(
            machines_end(here),
            "one is left, {after} ms after its start"
        );
    }
}

#[test]
fn programs_of_any_kind_run_behind_a_link_in_virtual_time() {
    let Some(directory) = scenario(TCP) else {
        return;
    };
    let here = directory.path();
    let connect = "import socket, time; start = time.monotonic(); \
                   socket.create_connection(('10.77.0.1', 8000)); print(round(time.monotonic() - start, 3))";
    // The first read of a file changes its access time.
    fs::write(here.join("read"), "").unwrap();
    let program = format!(
        "date +%s.%N; cat read; python3 -c \"{connect}\"; sleep 3600; date +%s.%N; echo error >&2; exit 3"
    );
    let server = "python3 -m http.server -b 10.77.0.1 8000";
    let mut outputs = Vec::new();
    let start = Instant::now();
    for _ in 0..2 {
        let shell = ["rtt=100ms", "--server", server, "--", "sh", "-c"];
        let output = link(here, &shell).arg(&program).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&output.stderr).contains("error\n"));
        outputs.push(String::from_utf8(output.stdout).unwrap());
    }
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "an hour is skipped"
    );
    assert_eq!(outputs[0], outputs[1]);
    let seconds: Vec<f64> = outputs[0]
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let [before, connected, after] = seconds[..] else {
        panic!("{}", outputs[0]);
    };
    assert!(
        (0.1..0.101).contains(&connected),
        "{connected} s to connect"
    );
    assert!(
        (3600.0..3601.0).contains(&(after - before)),
        "{}",
        outputs[0]
    );
    assert_eq!(left(here), Vec::<String>::new());
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let Some(directory) = scenario(TCP) else {
        return;
    };
    let program = ["rtt=1ms", "--", "no-such-program"];
    let output = link(directory.path(), &program).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("cannot run no-such-program"), "{printed}");
}
