//! Metrics of QUIC connections and of their endpoints.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use marline::{Connection, ConnectionStats, Endpoint, EndpointStats, Version, WeakConnection};

use super::super::exposition::head;
use super::histogram::Histogram;

/// Upper bounds of the buckets of times, in seconds.
const TIMES_S: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// The versions of QUIC, by their names in metrics.
const VERSIONS: [(Version, &str); 2] = [(Version::V1, "v1"), (Version::V2, "v2")];

/// Counts the QUIC connections of a server. The counters of open ones are summed only when the metrics are read.
#[derive(Debug, Default)]
pub(super) struct TransportMetrics(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    endpoints: BTreeMap<u64, Endpoint>,
    /// The number of the next endpoint.
    next_endpoint: u64,
    /// The sums over closed endpoints.
    endpoint_stats: EndpointStats,
    live: BTreeMap<u64, WeakConnection>,
    /// Connections of each of [`VERSIONS`].
    versions: [u64; VERSIONS.len()],
    next: u64,
    /// The sums over closed connections.
    done: Counts,
    handshakes: Histogram<{ TIMES_S.len() }>,
    rtts: Histogram<{ TIMES_S.len() }>,
}

/// Sums over connections.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    datagrams_sent: u64,
    datagrams_received: u64,
    bytes_sent: u64,
    bytes_received: u64,
    packets_dropped: u64,
    packets_sent: u64,
    packets_lost: u64,
    packets_lost_spuriously: u64,
    bytes_lost: u64,
    stream_bytes_retransmitted: u64,
    ptos: u64,
    congestion_events: u64,
}

/// Sums over the paths of open connections.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    paths: u64,
    windows: u64,
    in_flight: u64,
    rtts_s: f64,
    /// Paths with a measured round-trip time.
    rated: u64,
}

impl Counts {
    fn add(&mut self, stats: &ConnectionStats) {
        self.datagrams_sent += stats.udp_sent.datagrams;
        self.datagrams_received += stats.udp_received.datagrams;
        self.bytes_sent += stats.udp_sent.bytes;
        self.bytes_received += stats.udp_received.bytes;
        self.packets_dropped += stats.packets_dropped;
        self.stream_bytes_retransmitted += stats.streams.bytes_retransmitted;
        for path in &stats.paths {
            self.packets_sent += path.packets_sent;
            self.packets_lost += path.packets_lost;
            self.packets_lost_spuriously += path.packets_lost_spuriously;
            self.bytes_lost += path.bytes_lost;
            self.ptos += path.ptos;
            self.congestion_events += path.congestion_events;
        }
    }
}

impl Open {
    fn add(&mut self, stats: &ConnectionStats) {
        for path in &stats.paths {
            self.paths += 1;
            self.windows += path.congestion_window;
            self.in_flight += path.bytes_in_flight;
            if path.latest_rtt.is_some() {
                self.rtts_s += path.smoothed_rtt.as_secs_f64();
                self.rated += 1;
            }
        }
    }
}

/// A connection that is counted as open until this is dropped.
pub(super) struct Counted<'a> {
    metrics: &'a TransportMetrics,
    connection: &'a Connection,
    number: u64,
}

/// An endpoint whose metrics are read until this is dropped.
pub(crate) struct Watched<'a> {
    metrics: &'a TransportMetrics,
    number: u64,
}

impl TransportMetrics {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the counters of `endpoint` until the result is dropped; it stays open until then.
    pub(super) fn watch(&self, endpoint: Endpoint) -> Watched<'_> {
        let mut registry = self.registry();
        let number = registry.next_endpoint;
        registry.next_endpoint += 1;
        registry.endpoints.insert(number, endpoint);
        Watched {
            metrics: self,
            number,
        }
    }

    /// Counts a connection whose handshake is complete.
    pub(super) fn count<'a>(&'a self, connection: &'a Connection) -> Counted<'a> {
        let ConnectionStats {
            handshake, version, ..
        } = connection.stats();
        let mut registry = self.registry();
        let versions = VERSIONS.iter().zip(&mut registry.versions);
        for ((known, _), count) in versions {
            *count += u64::from(known.number() == version);
        }
        if let Some(time) = handshake {
            registry.handshakes.add(&TIMES_S, time.as_secs_f64());
        }
        let number = registry.next;
        registry.next += 1;
        registry.live.insert(number, connection.downgrade());
        Counted {
            metrics: self,
            connection,
            number,
        }
    }

    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let registry = self.registry();
        let mut counts = registry.done;
        let mut open = Open::default();
        for connection in registry.live.values().filter_map(WeakConnection::upgrade) {
            let stats = connection.stats();
            counts.add(&stats);
            open.add(&stats);
        }
        registry.write_endpoint(out)?;
        let handshakes = (
            "marline_quic_handshake_duration_seconds",
            "From the first packet of a client until the handshake is complete.",
        );
        registry.handshakes.write(out, handshakes, &TIMES_S)?;
        let rtts = (
            "marline_quic_last_rtt_seconds",
            "Smoothed round-trip times of connections at their end.",
        );
        registry.rtts.write(out, rtts, &TIMES_S)?;
        counts.write(out)?;
        open.write(out)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let stats = self.connection.stats();
        let mut registry = self.metrics.registry();
        registry.live.remove(&self.number);
        registry.done.add(&stats);
        if let Some(path) = stats.paths.first().filter(|path| path.latest_rtt.is_some()) {
            registry.rtts.add(&TIMES_S, path.smoothed_rtt.as_secs_f64());
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let endpoint = {
            let mut registry = self.metrics.registry();
            let endpoint = registry.endpoints.remove(&self.number);
            if let Some(endpoint) = &endpoint {
                registry.endpoint_stats += endpoint.stats();
            }
            endpoint
        };
        drop(endpoint);
    }
}

impl Registry {
    fn write_endpoint(&self, out: &mut String) -> std::fmt::Result {
        let mut stats = self.endpoint_stats;
        let mut all = 0;
        for endpoint in self.endpoints.values() {
            stats += endpoint.stats();
            all += endpoint.open_connections();
        }
        let EndpointStats {
            accepted,
            handshakes,
            retries,
            evicted,
            refused,
            passed_on,
        } = stats;
        let name = "marline_quic_connections";
        head(out, name, "gauge", "QUIC connections now, by state.")?;
        let open = self.live.len();
        let closing = all.saturating_sub(handshakes + open);
        for (state, count) in [
            ("handshake", handshakes),
            ("open", open),
            ("closing", closing),
        ] {
            writeln!(out, "{name}{{state=\"{state}\"}} {count}")?;
        }
        let name = "marline_quic_connections_total";
        let help = "QUIC connections whose handshake was completed, by version.";
        head(out, name, "counter", help)?;
        for ((_, version), count) in VERSIONS.iter().zip(self.versions) {
            writeln!(out, "{name}{{version=\"{version}\"}} {count}")?;
        }
        let name = "marline_quic_handshakes_total";
        head(out, name, "counter", "QUIC handshakes, by outcome.")?;
        let failed = accepted.saturating_sub(self.next + handshakes as u64);
        for (outcome, count) in [("completed", self.next), ("failed", failed)] {
            writeln!(out, "{name}{{outcome=\"{outcome}\"}} {count}")?;
        }
        let name = "marline_quic_refused_total";
        head(out, name, "counter", "QUIC clients refused, by reason.")?;
        for (reason, count) in [
            ("connections", refused.connections),
            ("connections_of_address", refused.connections_of_address),
            ("connections_of_prefix", refused.connections_of_prefix),
            ("handshakes_of_address", refused.handshakes_of_address),
            ("handshakes_of_prefix", refused.handshakes_of_prefix),
            ("invalid_token", refused.invalid_token),
            ("internal", refused.internal),
        ] {
            writeln!(out, "{name}{{reason=\"{reason}\"}} {count}")?;
        }
        let retries_help = "Retry packets sent.";
        counter(out, "marline_quic_retries_total", retries_help, retries)?;
        let evicted_help = "Idle QUIC connections closed for new clients.";
        counter(out, "marline_quic_evicted_total", evicted_help, evicted)?;
        let passed_help =
            "Datagrams that the kernel delivered at another worker than that of their connection.";
        counter(
            out,
            "marline_quic_datagrams_passed_on_total",
            passed_help,
            passed_on,
        )
    }
}

impl Counts {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        for (name, help, count) in [
            (
                "marline_quic_sent_datagrams_total",
                "UDP datagrams sent on QUIC connections.",
                self.datagrams_sent,
            ),
            (
                "marline_quic_received_datagrams_total",
                "UDP datagrams received on QUIC connections.",
                self.datagrams_received,
            ),
            (
                "marline_quic_sent_bytes_total",
                "Bytes of UDP payload sent on QUIC connections.",
                self.bytes_sent,
            ),
            (
                "marline_quic_received_bytes_total",
                "Bytes of UDP payload received on QUIC connections.",
                self.bytes_received,
            ),
            (
                "marline_quic_packets_dropped_total",
                "QUIC packets received and dropped.",
                self.packets_dropped,
            ),
            (
                "marline_quic_packets_sent_total",
                "QUIC packets sent.",
                self.packets_sent,
            ),
            (
                "marline_quic_packets_lost_total",
                "QUIC packets declared lost.",
                self.packets_lost,
            ),
            (
                "marline_quic_packets_lost_spuriously_total",
                "QUIC packets declared lost that arrived after all.",
                self.packets_lost_spuriously,
            ),
            (
                "marline_quic_lost_bytes_total",
                "Bytes of the packets declared lost.",
                self.bytes_lost,
            ),
            (
                "marline_quic_retransmitted_bytes_total",
                "Bytes of streams sent again.",
                self.stream_bytes_retransmitted,
            ),
            (
                "marline_quic_probe_timeouts_total",
                "Probe timeouts that fired.",
                self.ptos,
            ),
            (
                "marline_quic_congestion_events_total",
                "Reductions of congestion windows.",
                self.congestion_events,
            ),
        ] {
            counter(out, name, help, count)?;
        }
        Ok(())
    }
}

impl Open {
    /// Writes sums, and the number of paths to divide them by.
    fn write(&self, out: &mut String) -> std::fmt::Result {
        for (name, help, value) in [
            (
                "marline_quic_paths",
                "Paths of the QUIC connections open now.",
                self.paths,
            ),
            (
                "marline_quic_window_bytes",
                "Congestion windows of the paths open now, added up.",
                self.windows,
            ),
            (
                "marline_quic_in_flight_bytes",
                "Bytes in flight on the paths open now.",
                self.in_flight,
            ),
        ] {
            head(out, name, "gauge", help)?;
            writeln!(out, "{name} {value}")?;
        }
        let name = "marline_quic_rtt_seconds";
        let help = "Mean smoothed round-trip time of the paths open now; none without a path.";
        head(out, name, "gauge", help)?;
        if self.rated > 0 {
            writeln!(out, "{name} {}", self.rtts_s / self.rated as f64)?;
        }
        Ok(())
    }
}

fn counter(out: &mut String, name: &str, help: &str, count: u64) -> std::fmt::Result {
    head(out, name, "counter", help)?;
    writeln!(out, "{name} {count}")
}
