//! Counts, and the report of them.

use std::time::Duration;

use serde::Serialize;

/// The requests of a client, or of several.
#[derive(Default)]
pub(crate) struct Counts {
    /// The duration of each request with a response, in microseconds.
    latencies: Vec<u32>,
    pub(crate) errors: u64,
    /// The first error.
    error: Option<String>,
}

impl Counts {
    pub(crate) fn succeed(&mut self, latency: Duration) {
        self.latencies
            .push(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) fn fail(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        self.error.get_or_insert_with(|| format!("{error:#}"));
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.errors += other.errors;
        if self.error.is_none() {
            self.error = other.error;
        }
    }

    /// The report of `seconds`, in which there were `full_handshakes` and the client used `cpu_s`.
    pub(crate) fn report(mut self, seconds: f64, cpu_s: f64, full_handshakes: u64) -> Report {
        self.latencies.sort_unstable();
        let percentile = |percent: usize| {
            let rank = (self.latencies.len() * percent).div_ceil(100).max(1);
            self.latencies
                .get(rank - 1)
                .map(|&microseconds| f64::from(microseconds) / 1e3)
        };
        Report {
            requests: self.latencies.len(),
            errors: self.errors,
            p50_ms: percentile(50),
            p99_ms: percentile(99),
            error: self.error,
            seconds,
            cpu_s,
            full_handshakes,
        }
    }
}

/// The measurement of a run.
#[derive(Serialize, Debug, PartialEq)]
pub(crate) struct Report {
    /// Requests with the response that was expected.
    requests: usize,
    /// Requests and handshakes that failed.
    errors: u64,
    /// The first of these.
    error: Option<String>,
    /// From the first handshake to the last response.
    seconds: f64,
    /// CPU time of this client, seconds.
    cpu_s: f64,
    /// Handshakes in which the server sent a certificate.
    full_handshakes: u64,
    /// Median of the durations of requests.
    p50_ms: Option<f64>,
    /// Their 99th percentile.
    p99_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_durations_that_occurred() {
        let mut counts = Counts::default();
        for milliseconds in (1..=200).rev() {
            counts.succeed(Duration::from_millis(milliseconds));
        }
        let report = counts.report(2.0, 1.0, 3);
        assert_eq!((report.p50_ms, report.p99_ms), (Some(100.0), Some(198.0)));
        assert_eq!((report.requests, report.errors), (200, 0));
    }

    #[test]
    fn a_run_without_responses_has_no_percentiles() {
        let mut counts = Counts::default();
        counts.fail(&anyhow::anyhow!("first"));
        counts.fail(&anyhow::anyhow!("second"));
        let report = counts.report(1.0, 0.0, 0);
        assert_eq!((report.p50_ms, report.errors), (None, 2));
        assert_eq!(report.error.as_deref(), Some("first"));
    }
}
