//! Counters and their Prometheus text form.

mod bundles;
mod durations;
mod histogram;
mod history;
mod paths;
mod process;
mod sites;
mod transport;

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use http::{StatusCode, Version};
use marline::coordination::history::PathHistory;
use marline::settings::Named;
use marline::{MakeObserver, TransportConfig};
use rustls::ProtocolVersion;

use self::bundles::BundleMetrics;
use self::durations::Durations;
use self::history::HistoryMetrics;
use self::paths::PathMetrics;
pub(super) use self::process::write as write_process;
use self::sites::SiteMetrics;
pub use self::sites::SiteName;
use self::transport::{TransportMetrics, Watched};
use super::access_log::AccessLog;
use super::exposition::head;
use super::monitor::{Connections, StatusHealth, UpstreamHealth};
use super::record::Recorder;
use super::resources::Resources;
use crate::TlsVersion;
use crate::transport::both;

/// The versions of HTTP as in metrics and logs.
const VERSIONS: [&str; 3] = ["1.1", "2", "3"];

/// A source of further metrics, which are read with those of a server.
pub trait MetricsSource: fmt::Debug + Send + Sync {
    /// Appends them in the Prometheus text exposition format, version 0.0.4. It does not block.
    ///
    /// # Errors
    /// Those of writing to `out`, which has none.
    fn write(&self, out: &mut String) -> fmt::Result;

    /// Whether each application is expected to answer, if there are any.
    fn upstreams(&self) -> Vec<UpstreamHealth> {
        Vec::new()
    }

    /// The status of each certificate that asks to be stapled, if there are any.
    fn statuses(&self) -> Vec<StatusHealth> {
        Vec::new()
    }
}

/// The counters of a server since its start.
#[derive(Debug, Default)]
pub struct Metrics {
    versions: [PerVersion; 3],
    /// Handshakes over TCP with TLS 1.2.
    tls12: AtomicU64,
    /// Handshakes over TCP with TLS 1.3.
    tls13: AtomicU64,
    handshake_failures: AtomicU64,
    refused_connections: AtomicU64,
    rotation_failures: AtomicU64,
    handler_panics: AtomicU64,
    durations: Durations,
    sites: SiteMetrics,
    /// The connections that are open.
    pub(super) connections: Connections,
    /// Requests without a line in the access log so far.
    open_records: AtomicUsize,
    bundles: Arc<BundleMetrics>,
    history: Arc<HistoryMetrics>,
    /// The history store of the connections, if there is one.
    path_history: Option<Arc<dyn PathHistory>>,
    /// Metrics of QUIC connections and their endpoint.
    transport: TransportMetrics,
    /// Budgets of the server, once it runs.
    resources: OnceLock<Arc<Resources>>,
    more: OnceLock<Vec<Arc<dyn MetricsSource>>>,
    access_log: Mutex<Option<AccessLog>>,
    /// Metrics of paths, if connections may have several.
    paths: Option<PathMetrics>,
}

#[derive(Debug, Default)]
struct PerVersion {
    /// By class: 1xx to 5xx.
    responses: [AtomicU64; 5],
    bytes: AtomicU64,
    unreadable: AtomicU64,
    unanswered: AtomicU64,
    connections: AtomicU64,
    closed: AtomicU64,
}

/// `1.1`, `2` or `3`.
pub(crate) fn version_name(version: Version) -> &'static str {
    VERSIONS[index(version)]
}

fn index(version: Version) -> usize {
    match version {
        Version::HTTP_3 => 2,
        Version::HTTP_2 => 1,
        _ => 0,
    }
}

impl Metrics {
    /// The metrics of a server with the configuration `transport`.
    pub(super) fn of(transport: &TransportConfig) -> Self {
        Self {
            path_history: transport.history.clone(),
            paths: transport.multipath.as_ref().map(|_| PathMetrics::default()),
            ..Self::default()
        }
    }

    /// The observers of connections with the configuration `transport`, if they have metrics.
    pub(super) fn observers(&self, transport: &TransportConfig) -> Option<MakeObserver> {
        let coordinates = transport.bundle.is_some();
        both(
            coordinates.then(|| self.bundles.observers()),
            self.path_history.as_ref().map(|_| self.history.observers()),
        )
    }

    /// Reads the counters of `endpoint` until the result is dropped; it stays open until then.
    pub(super) fn watch(&self, endpoint: marline::Endpoint) -> Watched<'_> {
        self.transport.watch(endpoint)
    }

    /// Counts a connection whose handshake is complete, and its paths, until it is closed.
    pub(super) async fn follow(&self, connection: &marline::Connection) {
        let _counted = self.transport.count(connection);
        match self.paths.as_ref().filter(|_| connection.is_multipath()) {
            Some(paths) => paths.follow(connection).await,
            None => drop(connection.closed().await),
        }
    }

    /// Shows the use of `resources`.
    pub(super) fn show(&self, resources: &Arc<Resources>) {
        // A server has one set of budgets.
        let _ = self.resources.set(Arc::clone(resources));
    }

    /// Shows the metrics of `more`, too.
    pub(super) fn show_more(&self, more: Vec<Arc<dyn MetricsSource>>) {
        // They are set once.
        let _ = self.more.set(more);
    }

    /// Shows the dropped lines of `log`, instead of the previous one's.
    pub(super) fn show_log(&self, log: Option<&AccessLog>) {
        *self.log() = log.cloned();
    }

    fn log(&self) -> MutexGuard<'_, Option<AccessLog>> {
        self.access_log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection is open until the result is dropped.
    pub(super) fn connection_opened(
        self: &Arc<Self>,
        recorder: &Arc<Recorder>,
        version: Version,
    ) -> OpenConnection {
        let counters = &self.versions[index(version)];
        counters.connections.fetch_add(1, Relaxed);
        OpenConnection {
            metrics: Arc::clone(self),
            version,
            number: self.connections.add(recorder, version),
        }
    }

    /// A handshake over TCP is complete.
    pub(super) fn tls_opened(&self, version: Option<ProtocolVersion>) {
        let counter = match version {
            Some(ProtocolVersion::TLSv1_2) => &self.tls12,
            _ => &self.tls13,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// A request has arrived.
    pub(super) fn record_opened(&self) {
        self.open_records.fetch_add(1, Relaxed);
    }

    /// Its record is complete.
    pub(super) fn record_closed(&self) {
        self.open_records.fetch_sub(1, Relaxed);
    }

    /// Requests whose records are not complete.
    pub(super) fn open_records(&self) -> usize {
        self.open_records.load(Relaxed)
    }

    pub(super) fn handshake_failed(&self) {
        self.handshake_failures.fetch_add(1, Relaxed);
    }

    pub(super) fn connection_refused(&self) {
        self.refused_connections.fetch_add(1, Relaxed);
    }

    pub(super) fn responded(
        &self,
        version: Version,
        site: Option<&SiteName>,
        status: StatusCode,
        bytes: u64,
        duration: Duration,
    ) {
        let of_version = &self.versions[index(version)];
        of_version.responses[class(status)].fetch_add(1, Relaxed);
        of_version.bytes.fetch_add(bytes, Relaxed);
        self.durations.add(duration);
        if let Some(site) = site {
            self.sites.responded(site, status, bytes, duration);
        }
    }

    /// Shows these sites from now on.
    pub(super) fn show_sites(&self, sites: &[SiteName]) {
        self.sites.show(sites);
    }

    /// Whether each application is expected to answer.
    pub(super) fn upstreams(&self) -> Vec<UpstreamHealth> {
        let more = self.more.get().into_iter().flatten();
        more.flat_map(|more| more.upstreams()).collect()
    }

    /// The status of each certificate that asks to be stapled.
    pub(super) fn statuses(&self) -> Vec<StatusHealth> {
        let more = self.more.get().into_iter().flatten();
        more.flat_map(|more| more.statuses()).collect()
    }

    /// A request was malformed or too large.
    pub(super) fn request_unreadable(&self, version: Version) {
        let counters = &self.versions[index(version)];
        counters.unreadable.fetch_add(1, Relaxed);
    }

    /// A request ended before it had a response.
    pub(super) fn request_unanswered(&self, version: Version) {
        let counters = &self.versions[index(version)];
        counters.unanswered.fetch_add(1, Relaxed);
    }

    /// Counts a panic of the site while it answered a request.
    pub(super) fn handler_panicked(&self) {
        self.handler_panics.fetch_add(1, Relaxed);
    }

    /// Keys of the state directory could not be replaced.
    pub(super) fn rotation_failed(&self) {
        self.rotation_failures.fetch_add(1, Relaxed);
    }

    /// Responses so far, of all versions.
    pub fn responses(&self) -> u64 {
        self.durations.count()
    }

    /// The Prometheus text exposition format, version 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(4096);
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let name = "marline_http_responses_total";
        head(
            out,
            name,
            "counter",
            "Responses by HTTP version and status class.",
        )?;
        for (version, counters) in VERSIONS.iter().zip(&self.versions) {
            for (class, count) in (1..).zip(&counters.responses) {
                let count = count.load(Relaxed);
                writeln!(
                    out,
                    "{name}{{version=\"{version}\",status=\"{class}xx\"}} {count}"
                )?;
            }
        }
        let name = "marline_http_response_bytes_total";
        head(out, name, "counter", "Bytes of response content sent.")?;
        for (version, counters) in VERSIONS.iter().zip(&self.versions) {
            let bytes = counters.bytes.load(Relaxed);
            writeln!(out, "{name}{{version=\"{version}\"}} {bytes}")?;
        }
        let name = "marline_http_unreadable_requests_total";
        let help = "Requests that were malformed or too large; of HTTP/2 the h2 library refuses them uncounted.";
        head(out, name, "counter", help)?;
        for (version, counters) in VERSIONS.iter().zip(&self.versions) {
            let unreadable = counters.unreadable.load(Relaxed);
            writeln!(out, "{name}{{version=\"{version}\"}} {unreadable}")?;
        }
        let name = "marline_http_unanswered_requests_total";
        let help = "Requests whose client or connection was gone before the response.";
        head(out, name, "counter", help)?;
        for (version, counters) in VERSIONS.iter().zip(&self.versions) {
            let unanswered = counters.unanswered.load(Relaxed);
            writeln!(out, "{name}{{version=\"{version}\"}} {unanswered}")?;
        }
        let name = "marline_http_handler_panics_total";
        let help =
            "Requests that failed because of a defect of the program, which standard error has.";
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.handler_panics.load(Relaxed))?;
        let name = "marline_key_rotation_failures_total";
        let help = "Failures to replace the keys of the state directory.";
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.rotation_failures.load(Relaxed))?;
        let name = "marline_connections_total";
        head(
            out,
            name,
            "counter",
            "Connections whose handshake was completed.",
        )?;
        for (version, counters) in VERSIONS.iter().zip(&self.versions) {
            let total = counters.connections.load(Relaxed);
            writeln!(out, "{name}{{version=\"{version}\"}} {total}")?;
        }
        let name = "marline_connections_open";
        head(out, name, "gauge", "Connections open now.")?;
        for (version, counters) in VERSIONS.iter().zip(&self.versions) {
            let closed = counters.closed.load(Relaxed);
            let open = counters.connections.load(Relaxed).saturating_sub(closed);
            writeln!(out, "{name}{{version=\"{version}\"}} {open}")?;
        }
        let name = "marline_tls_handshakes_total";
        let help = "TLS handshakes over TCP that were completed, by version of TLS.";
        head(out, name, "counter", help)?;
        for (version, count) in [
            (TlsVersion::Tls12, &self.tls12),
            (TlsVersion::Tls13, &self.tls13),
        ] {
            let (version, count) = (version.name(), count.load(Relaxed));
            writeln!(out, "{name}{{version=\"{version}\"}} {count}")?;
        }
        let name = "marline_handshake_failures_total";
        head(out, name, "counter", "TLS and QUIC handshakes that failed.")?;
        writeln!(out, "{name} {}", self.handshake_failures.load(Relaxed))?;
        let name = "marline_connections_refused_total";
        head(
            out,
            name,
            "counter",
            "Connections refused because too many were open.",
        )?;
        writeln!(out, "{name} {}", self.refused_connections.load(Relaxed))?;
        self.transport.write(out)?;
        process::write(out)?;
        if let Some(resources) = self.resources.get() {
            resources.write(out)?;
        }
        if let Some(log) = &*self.log() {
            let name = "marline_access_log_dropped_total";
            let help = "Lines of the access log that were dropped.";
            head(out, name, "counter", help)?;
            writeln!(out, "{name} {}", log.dropped())?;
        }
        self.sites.write(out)?;
        self.bundles.write(out)?;
        if let Some(path_history) = &self.path_history {
            self.history.write(out)?;
            if let Some(store) = path_history.store() {
                history::write_store(out, &store.statistics())?;
            }
        }
        if let Some(paths) = &self.paths {
            paths.write(out)?;
        }
        for more in self.more.get().into_iter().flatten() {
            more.write(out)?;
        }

        let name = "marline_http_request_duration_seconds";
        head(
            out,
            name,
            "histogram",
            "From the request's header until the whole response was passed to the connection.",
        )?;
        self.durations.write(out, name, "")
    }
}

/// The class of a status, from 0 for 1xx.
fn class(status: StatusCode) -> usize {
    usize::from(status.as_u16() / 100).clamp(1, 5) - 1
}

/// A connection that counts as open.
#[derive(Debug)]
pub(super) struct OpenConnection {
    metrics: Arc<Metrics>,
    version: Version,
    /// Its number among the connections that are shown.
    number: u64,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.connections.remove(self.number);
        let counters = &self.metrics.versions[index(self.version)];
        counters.closed.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests;
