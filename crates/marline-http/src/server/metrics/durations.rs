//! The durations of responses, as a histogram that requests update without a lock.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, in seconds.
const BUCKETS_S: [f64; 11] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

#[derive(Debug, Default)]
pub(super) struct Durations {
    buckets: [AtomicU64; BUCKETS_S.len()],
    sum_ns: AtomicU64,
    count: AtomicU64,
}

impl Durations {
    pub(super) fn add(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = BUCKETS_S.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Relaxed);
        }
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(nanos, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Writes the samples of the metric `name`, each with `labels`, which end with a comma unless there is none.
    pub(super) fn write(&self, out: &mut String, name: &str, labels: &str) -> fmt::Result {
        let mut cumulated = 0;
        for (bound, count) in BUCKETS_S.iter().zip(&self.buckets) {
            cumulated += count.load(Relaxed);
            writeln!(out, "{name}_bucket{{{labels}le=\"{bound}\"}} {cumulated}")?;
        }
        let count = self.count().max(cumulated);
        let seconds = Duration::from_nanos(self.sum_ns.load(Relaxed)).as_secs_f64();
        writeln!(out, "{name}_bucket{{{labels}le=\"+Inf\"}} {count}")?;
        let labels = match labels.strip_suffix(',') {
            Some(labels) => format!("{{{labels}}}"),
            None => String::new(),
        };
        writeln!(
            out,
            "{name}_sum{labels} {seconds}\n{name}_count{labels} {count}"
        )
    }
}
