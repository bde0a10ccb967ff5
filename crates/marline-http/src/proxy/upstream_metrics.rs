//! Metrics of the applications behind a reverse proxy.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::Version;

use super::failure::Failure;
use super::retry::Setback;
use super::upstream::Upstream;
use crate::server::{MetricsSource, UpstreamHealth, metric_head};

/// The counters of each application of a reverse proxy, for
/// [`ServerConfig::more_metrics`](crate::server::ServerConfig::more_metrics).
///
/// Several proxies may have the same metrics. One that replaces another, as after a change of its configuration, continues the
/// counters. Applications that no proxy has are no longer shown.
#[derive(Debug, Default)]
pub struct UpstreamMetrics(Mutex<BTreeMap<String, Entry>>);

#[derive(Debug, Default)]
struct Entry {
    counters: Arc<Counters>,
    /// The application; several if its URL is listed twice.
    upstreams: Vec<Weak<Upstream>>,
}

/// The reasons why an application gave no response, as in `Proxy-Status` (RFC 9209, section 2.3).
const ERRORS: [&str; 7] = [
    "destination_unavailable",
    "connection_timeout",
    "tls_certificate_error",
    "tls_protocol_error",
    "http_response_timeout",
    "http_response_incomplete",
    "connection_limit_reached",
];

/// The versions of HTTP of connections.
const VERSIONS: [(Version, &str); 3] = [
    (Version::HTTP_11, "1.1"),
    (Version::HTTP_2, "2"),
    (Version::HTTP_3, "3"),
];

/// The counters of an application.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Connections that have opened, by version.
    connections: [AtomicU64; VERSIONS.len()],
    /// The place in [`VERSIONS`] of the last connection, counted from 1; 0 before the first.
    last_version: AtomicUsize,
    requests: AtomicU64,
    /// Requests that were sent again, by reason.
    repeated: [AtomicU64; Setback::ALL.len()],
    in_flight: AtomicU64,
    failures: [AtomicU64; ERRORS.len()],
}

/// A request in progress, until it is dropped.
pub(super) struct InFlight(Arc<Counters>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Counters {
    /// A request has a place at the application.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Requests that have a place now.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// A connection has opened, over `version`.
    pub(super) fn on_connected(&self, version: Version) {
        let place = VERSIONS.iter().position(|(known, _)| *known == version);
        if let Some(place) = place {
            self.connections[place].fetch_add(1, Relaxed);
            self.last_version.store(place + 1, Relaxed);
        }
    }

    /// The version of HTTP of the last connection.
    fn version(&self) -> Option<&'static str> {
        let place = self.last_version.load(Relaxed).checked_sub(1)?;
        VERSIONS.get(place).map(|(_, name)| *name)
    }

    /// A request is sent.
    pub(super) fn on_sent(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    /// The request is sent once more, here or elsewhere, because of `setback`.
    pub(super) fn on_repeated(&self, setback: Setback) {
        let place = Setback::ALL.iter().position(|one| *one == setback);
        if let Some(count) = place.and_then(|place| self.repeated.get(place)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// There is no response. Failures caused by the client are not counted.
    pub(super) fn on_failure(&self, failure: &Failure) {
        let place = ERRORS.iter().position(|error| *error == failure.kind());
        if let Some(count) = place.and_then(|place| self.failures.get(place)) {
            count.fetch_add(1, Relaxed);
        }
    }
}

impl UpstreamMetrics {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of the application with this URL.
    pub(super) fn counters(&self, url: &str) -> Arc<Counters> {
        let mut entries = self.lock();
        let entry = entries.entry(url.to_owned()).or_default();
        Arc::clone(&entry.counters)
    }

    /// Shows the applications as long as they are used.
    pub(super) fn show(&self, upstreams: &[Arc<Upstream>]) {
        let mut entries = self.lock();
        for upstream in upstreams {
            let entry = entries.entry(upstream.url().to_string()).or_default();
            entry.upstreams.push(Arc::downgrade(upstream));
        }
        forget_unused(&mut entries);
    }
}

fn forget_unused(entries: &mut BTreeMap<String, Entry>) {
    entries.retain(|_, entry| {
        entry.upstreams.retain(|one| one.strong_count() > 0);
        !entry.upstreams.is_empty()
    });
}

impl MetricsSource for UpstreamMetrics {
    fn upstreams(&self) -> Vec<UpstreamHealth> {
        let entries = self.lock();
        let mut all = Vec::new();
        for (url, entry) in &*entries {
            let upstreams = entry.upstreams.iter().filter_map(Weak::upgrade);
            all.extend(upstreams.map(|upstream| UpstreamHealth {
                upstream: url.clone(),
                health_path: upstream.health_path().map(ToString::to_string),
                healthy: upstream.is_healthy(),
                version: entry.counters.version(),
            }));
        }
        // Sites with the same view of an application are one.
        all.sort();
        all.dedup();
        all
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let mut entries = self.lock();
        forget_unused(&mut entries);
        let name = "marline_upstream_requests_total";
        let help =
            "Requests that were sent to each application; one that is sent again counts again.";
        metric_head(out, name, "counter", help)?;
        for (url, entry) in &*entries {
            let count = entry.counters.requests.load(Relaxed);
            writeln!(out, "{name}{{upstream=\"{url}\"}} {count}")?;
        }
        let name = "marline_upstream_failures_total";
        let help = "Requests without a usable response, by the error as in Proxy-Status.";
        metric_head(out, name, "counter", help)?;
        for (url, entry) in &*entries {
            for (error, count) in ERRORS.iter().zip(&entry.counters.failures) {
                let count = count.load(Relaxed);
                writeln!(
                    out,
                    "{name}{{upstream=\"{url}\",error=\"{error}\"}} {count}"
                )?;
            }
        }
        let name = "marline_upstream_repeated_total";
        let help = "Requests that were sent again, there or elsewhere, because the application could not be reached (unsent), had closed an idle connection (stale), closed a new one (lost), or answered 502, 503 or 504 (unavailable).";
        metric_head(out, name, "counter", help)?;
        for (url, entry) in &*entries {
            for (setback, count) in Setback::ALL.iter().zip(&entry.counters.repeated) {
                let (reason, count) = (setback.name(), count.load(Relaxed));
                writeln!(
                    out,
                    "{name}{{upstream=\"{url}\",reason=\"{reason}\"}} {count}"
                )?;
            }
        }
        let name = "marline_upstream_connections_total";
        let help = "Connections to each application that have opened, by version of HTTP.";
        metric_head(out, name, "counter", help)?;
        for (url, entry) in &*entries {
            for ((_, version), count) in VERSIONS.iter().zip(&entry.counters.connections) {
                let count = count.load(Relaxed);
                writeln!(
                    out,
                    "{name}{{upstream=\"{url}\",version=\"{version}\"}} {count}"
                )?;
            }
        }
        let name = "marline_upstream_in_flight";
        let help =
            "Requests that have a place at each application now, until their responses have ended.";
        metric_head(out, name, "gauge", help)?;
        for (url, entry) in &*entries {
            let count = entry.counters.in_flight.load(Relaxed);
            writeln!(out, "{name}{{upstream=\"{url}\"}} {count}")?;
        }
        let name = "marline_upstream_waiting";
        let help = "Requests that wait for a place at each application now.";
        metric_head(out, name, "gauge", help)?;
        for (url, entry) in &*entries {
            let upstreams = entry.upstreams.iter().filter_map(Weak::upgrade);
            let count: u64 = upstreams.map(|upstream| upstream.waited_for()).sum();
            writeln!(out, "{name}{{upstream=\"{url}\"}} {count}")?;
        }
        let name = "marline_upstream_healthy";
        let help =
            "Whether each application is expected to answer, by all sites that have it: 1, or 0.";
        metric_head(out, name, "gauge", help)?;
        for (url, entry) in &*entries {
            let mut upstreams = entry.upstreams.iter().filter_map(Weak::upgrade);
            let healthy = u8::from(upstreams.all(|upstream| upstream.is_healthy()));
            writeln!(out, "{name}{{upstream=\"{url}\"}} {healthy}")?;
        }
        Ok(())
    }
}
