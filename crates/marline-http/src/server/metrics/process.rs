//! Metrics of the process, by the names of Prometheus' own libraries, and of the build.

use std::fmt::Write;
use std::fs;

use super::super::exposition::head;

/// Clock ticks in a second in the files of Linux' /proc: a constant of its interface on all architectures in use.
const TICKS_PER_SECOND: f64 = 100.0;

/// The system's report on this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Process {
    open_fds: Option<usize>,
    resident_bytes: Option<u64>,
    cpu_seconds: Option<f64>,
    /// Seconds since the Unix epoch.
    start_seconds: Option<f64>,
}

impl Process {
    /// Reads the report; empty on systems without /proc.
    fn read() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let system = fs::read_to_string("/proc/stat").unwrap_or_default();
        // The directory being read is open itself.
        let descriptors = fs::read_dir("/proc/self/fd").map(|entries| entries.count());
        Self {
            open_fds: descriptors.ok().map(|count| count.saturating_sub(1)),
            resident_bytes: value(&status, "VmRSS:").map(|kib| kib * 1024),
            cpu_seconds: cpu_seconds(&stat),
            start_seconds: start_seconds(&stat, &system),
        }
    }
}

/// The number after `key` at the beginning of a line.
fn value(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A field of /proc/self/stat, by its number in proc(5). The name of the program, the second field, may contain
/// anything: counting starts at its closing parenthesis.
fn field(stat: &str, number: usize) -> Option<f64> {
    let rest = stat.get(stat.rfind(')')? + 1..)?;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS_PER_SECOND)
}

fn start_seconds(stat: &str, system: &str) -> Option<f64> {
    let boot = value(system, "btime")? as f64;
    Some(boot + field(stat, 22)? / TICKS_PER_SECOND)
}

/// Writes the metrics of the process that the system reports, and `marline_build_info`.
pub(in super::super) fn write(out: &mut String) -> std::fmt::Result {
    let Process {
        open_fds,
        resident_bytes,
        cpu_seconds,
        start_seconds,
    } = Process::read();
    let mut gauge = |name: &str, kind: &str, help: &str, value: Option<f64>| match value {
        Some(value) => {
            head(out, name, kind, help)?;
            writeln!(out, "{name} {value}")
        }
        None => Ok(()),
    };
    gauge(
        "process_open_fds",
        "gauge",
        "Open file descriptors.",
        open_fds.map(|count| count as f64),
    )?;
    gauge(
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory.",
        resident_bytes.map(|bytes| bytes as f64),
    )?;
    gauge(
        "process_cpu_seconds_total",
        "counter",
        "Processor time, of user and system.",
        cpu_seconds,
    )?;
    gauge(
        "process_start_time_seconds",
        "gauge",
        "Start of the process since the Unix epoch.",
        start_seconds,
    )?;
    let name = "marline_build_info";
    head(out, name, "gauge", "The version of marline; always 1.")?;
    let version = env!("CARGO_PKG_VERSION");
    writeln!(out, "{name}{{version=\"{version}\"}} 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_from_the_end_of_the_programs_name() {
        let stat = "7 (a) b (c) S 1 1 1 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 1 0 1000 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(
            start_seconds(stat, "cpu 1 2\nbtime 1700000000\n"),
            Some(1_700_000_010.0)
        );
        assert_eq!(cpu_seconds("nonsense"), None);
        assert_eq!(value("VmRSS:\t  12 kB\n", "VmRSS:"), Some(12));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_all_of_the_process() {
        let process = Process::read();
        assert!(process.open_fds.is_some_and(|count| count > 0));
        assert!(process.resident_bytes.is_some_and(|bytes| bytes > 0));
        assert!(process.cpu_seconds.is_some());
        assert!(process.start_seconds.is_some_and(|start| start > 1e9));
    }
}
