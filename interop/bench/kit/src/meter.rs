//! Time, CPU time and memory of this process.

use std::fs;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::Serialize;

/// The measurements of a client.
#[derive(Serialize)]
pub struct Report {
    /// Bytes received on streams.
    pub bytes: u64,
    /// Downloads, requests, handshakes or connections.
    pub count: u64,
    /// The duration.
    pub seconds: f64,
    /// CPU time of the client, user and system, seconds.
    pub cpu_s: f64,
    /// The duration of each download of the task `fetch`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<f64>,
}

impl Report {
    /// Prints the report as one line of JSON.
    pub fn print(&self) {
        print_json(self);
    }
}

/// Prints `value` as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) {
    // Plain numbers always serialize.
    println!("{}", serde_json::to_string(value).unwrap_or_default());
}

/// A measurement in progress.
pub struct Meter {
    start: Instant,
    cpu_s: f64,
}

impl Meter {
    /// Starts measuring.
    #[must_use]
    pub fn start() -> Self {
        let cpu_s = cpu_seconds();
        Self {
            start: Instant::now(),
            cpu_s,
        }
    }

    /// Seconds since the start.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Ends the measurement of `count` operations with `bytes` in total.
    #[must_use]
    pub fn report(&self, count: u64, bytes: u64) -> Report {
        let seconds = self.seconds();
        Report {
            bytes,
            count,
            seconds,
            cpu_s: cpu_seconds() - self.cpu_s,
            each: Vec::new(),
        }
    }
}

/// CPU time this process has used, user and system, seconds.
#[must_use]
pub fn cpu_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        let time = usage.user_time() + usage.system_time();
        time.num_microseconds() as f64 / 1e6
    })
}

/// Memory of this process that is resident, bytes, once freed memory is given back to the system.
#[must_use]
pub fn resident_bytes() -> u64 {
    give_back();
    // Summed up from the pages, because the counter of `statm` is delayed.
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    resident_of(&rollup).unwrap_or(0)
}

fn resident_of(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "malloc_trim has no safe wrapper; it takes a number and has no preconditions"
)]
fn give_back() {
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_parsed_from_smaps_rollup() {
        let rollup = "55a-7ff ---p 0 00:00 0 [rollup]\nRss:     1840 kB\nPss:  200 kB\n";
        assert_eq!(resident_of(rollup), Some(1840 << 10));
        assert_eq!(resident_of("Pss: 1 kB\n"), None);
        assert!(resident_bytes() > 100_000);
    }

    #[test]
    fn cpu_time_increases_with_work() {
        let meter = Meter::start();
        while meter.report(0, 0).cpu_s < 0.02 {
            std::hint::spin_loop();
        }
        let report = meter.report(3, 5);
        assert!(report.seconds >= 0.02);
        assert_eq!((report.count, report.bytes), (3, 5));
    }
}
