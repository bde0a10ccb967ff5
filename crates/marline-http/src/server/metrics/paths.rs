//! Metrics of the paths of multipath connections.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use marline::{Connection, ConnectionEvent, ErrorCode, PathId, PathStats, WeakConnection};

use super::super::exposition::head;
use super::histogram::Histogram;

/// Paths with lower IDs have metrics of their own; the others are counted together.
const NUMBERED: usize = 16;

/// Upper bounds of the buckets of round-trip times, in seconds, and of windows, in bytes.
const RTT_S: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];
const WINDOWS: [f64; 7] = [15e3, 60e3, 120e3, 480e3, 1e6, 4e6, 16e6];

/// The reasons why paths are closed, as in metrics.
const REASONS: [(ErrorCode, &str); 6] = [
    (ErrorCode::NO_ERROR, "no_error"),
    (ErrorCode::APPLICATION_ABANDON_PATH, "application"),
    (ErrorCode::PATH_UNSTABLE_OR_POOR, "unstable_or_poor"),
    (ErrorCode::PATH_RESOURCE_LIMIT_REACHED, "resource_limit"),
    (ErrorCode::NO_CID_AVAILABLE_FOR_PATH, "no_connection_id"),
    (ErrorCode::NO_VIABLE_PATH, "no_viable_path"),
];

/// Counts the paths of an endpoint's connections. The counters of open paths are summed only when the metrics
/// are read.
#[derive(Debug, Default)]
pub(crate) struct PathMetrics(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    live: BTreeMap<u64, Live>,
    next: u64,
    /// Connections that may have several paths.
    connections: u64,
    /// Paths that were opened in addition to the first.
    opened: u64,
    /// Paths that were closed: by [`REASONS`], and for other reasons.
    closed: [u64; REASONS.len() + 1],
    /// The counters of closed paths.
    done: [Counts; NUMBERED + 1],
    rtts: Histogram<{ RTT_S.len() }>,
    windows: Histogram<{ WINDOWS.len() }>,
}

/// An open connection.
#[derive(Debug)]
struct Live {
    connection: WeakConnection,
    /// Paths that were counted as opened.
    seen: Vec<PathId>,
    /// Paths whose counters are in [`Registry::done`].
    done: Vec<PathId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    received: u64,
    lost: u64,
}

impl Counts {
    fn add(&mut self, path: &PathStats) {
        self.sent += path.udp_sent.bytes;
        self.received += path.udp_received.bytes;
        self.lost += path.packets_lost;
    }
}

/// Open paths of one ID.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    paths: u64,
    rtts_s: f64,
    /// Paths with a measured round-trip time.
    rated: u64,
    windows: f64,
}

/// The index of a path among the counted ones.
fn index(id: PathId) -> usize {
    (id.0 as usize).min(NUMBERED)
}

fn label(place: usize) -> String {
    match place {
        NUMBERED => "more".to_owned(),
        place => place.to_string(),
    }
}

impl PathMetrics {
    /// Counts the paths of a connection until it is closed.
    pub(crate) async fn follow(&self, connection: &Connection) {
        let mut events = connection.events();
        let following = Following {
            metrics: self,
            connection,
            number: self.registry().enter(connection),
        };
        following.count(|_, _| {});
        while let Some(event) = events.next().await {
            match event {
                ConnectionEvent::PathOpened(_) => following.count(|_, _| {}),
                ConnectionEvent::PathClosed { id, error } => {
                    following.count(|registry, paths| {
                        registry.count_closed(error);
                        if let Some(path) = paths.iter().find(|path| path.id == id) {
                            registry.add_closed(following.number, path);
                        }
                    });
                }
                _ => {}
            }
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let registry = self.registry();
        let mut counts = registry.done;
        let mut open = [Open::default(); NUMBERED + 1];
        let mut out_of_order = 0;
        for live in registry.live.values() {
            let Some(connection) = live.connection.upgrade() else {
                continue;
            };
            let stats = connection.stats();
            out_of_order += stats.streams.out_of_order_bytes;
            for path in &stats.paths {
                if live.done.contains(&path.id) {
                    continue;
                }
                counts[index(path.id)].add(path);
                let open = &mut open[index(path.id)];
                open.paths += 1;
                open.windows += path.congestion_window as f64;
                if path.latest_rtt.is_some() {
                    open.rtts_s += path.smoothed_rtt.as_secs_f64();
                    open.rated += 1;
                }
            }
        }
        registry.write_totals(out)?;
        write_open(out, &open)?;
        write_counts(out, &counts)?;
        let name = "marline_out_of_order_bytes";
        let help = "Bytes held because earlier ones of their stream are missing.";
        head(out, name, "gauge", help)?;
        writeln!(out, "{name} {out_of_order}")
    }
}

/// A connection in the registry; it is removed when this is dropped.
struct Following<'a> {
    metrics: &'a PathMetrics,
    connection: &'a Connection,
    number: u64,
}

impl Following<'_> {
    /// Counts new paths, then calls `rest` with all paths.
    fn count(&self, rest: impl FnOnce(&mut Registry, &[PathStats])) {
        let mut registry = self.metrics.registry();
        let paths = self.connection.paths();
        registry.count_opened(self.number, &paths);
        rest(&mut registry, &paths);
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.count(|registry, paths| {
            for path in paths {
                registry.add_closed(self.number, path);
            }
            registry.live.remove(&self.number);
        });
    }
}

impl Registry {
    fn enter(&mut self, connection: &Connection) -> u64 {
        let number = self.next;
        self.next += 1;
        self.connections += 1;
        let live = Live {
            connection: connection.downgrade(),
            seen: vec![PathId::INITIAL],
            done: Vec::new(),
        };
        self.live.insert(number, live);
        number
    }

    fn count_opened(&mut self, number: u64, paths: &[PathStats]) {
        let Some(live) = self.live.get_mut(&number) else {
            return;
        };
        for path in paths {
            if !live.seen.contains(&path.id) {
                live.seen.push(path.id);
                self.opened += 1;
            }
        }
        // Paths that the connection no longer knows are not listed again.
        let is_there =
            |id: &PathId| *id == PathId::INITIAL || paths.iter().any(|path| path.id == *id);
        live.seen.retain(is_there);
        live.done.retain(is_there);
    }

    fn count_closed(&mut self, error: ErrorCode) {
        let known = REASONS.iter().position(|(code, _)| *code == error);
        self.closed[known.unwrap_or(REASONS.len())] += 1;
    }

    /// Adds the counters of a closed path.
    fn add_closed(&mut self, number: u64, path: &PathStats) {
        let Some(live) = self.live.get_mut(&number) else {
            return;
        };
        if live.done.contains(&path.id) {
            return;
        }
        live.done.push(path.id);
        self.done[index(path.id)].add(path);
        if path.latest_rtt.is_some() {
            self.rtts.add(&RTT_S, path.smoothed_rtt.as_secs_f64());
        }
        self.windows.add(&WINDOWS, path.congestion_window as f64);
    }

    fn write_totals(&self, out: &mut String) -> std::fmt::Result {
        let name = "marline_multipath_connections_total";
        let help = "Connections on which client and server negotiated multipath.";
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.connections)?;
        let name = "marline_paths_opened_total";
        let help = "Paths that clients opened in addition to the first.";
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.opened)?;
        let name = "marline_paths_closed_total";
        let help = "Paths that were closed before their connection, by reason.";
        head(out, name, "counter", help)?;
        let reasons = REASONS.iter().map(|(_, reason)| *reason).chain(["other"]);
        for (reason, count) in reasons.zip(&self.closed) {
            writeln!(out, "{name}{{reason=\"{reason}\"}} {count}")?;
        }
        let rtt = (
            "marline_path_last_rtt_seconds",
            "Smoothed round-trip times of paths at their end.",
        );
        self.rtts.write(out, rtt, &RTT_S)?;
        let window = (
            "marline_path_last_window_bytes",
            "Congestion windows of paths at their end.",
        );
        self.windows.write(out, window, &WINDOWS)
    }
}

/// Writes gauges of open paths; IDs without an open path are left out.
fn write_open(out: &mut String, open: &[Open]) -> std::fmt::Result {
    let name = "marline_paths_open";
    let help = "Paths open now, by their number in their connection.";
    head(out, name, "gauge", help)?;
    let used = || open.iter().enumerate().filter(|(_, open)| open.paths > 0);
    for (place, open) in used() {
        writeln!(out, "{name}{{path=\"{}\"}} {}", label(place), open.paths)?;
    }
    let name = "marline_path_rtt_seconds";
    let help = "Mean smoothed round-trip time of the paths open now.";
    head(out, name, "gauge", help)?;
    for (place, open) in used().filter(|(_, open)| open.rated > 0) {
        let mean = open.rtts_s / open.rated as f64;
        writeln!(out, "{name}{{path=\"{}\"}} {mean}", label(place))?;
    }
    let name = "marline_path_window_bytes";
    let help = "Mean congestion window of the paths open now.";
    head(out, name, "gauge", help)?;
    for (place, open) in used() {
        let mean = open.windows / open.paths as f64;
        writeln!(out, "{name}{{path=\"{}\"}} {mean}", label(place))?;
    }
    Ok(())
}

/// Writes counters; IDs that no path has had are left out.
fn write_counts(out: &mut String, counts: &[Counts]) -> std::fmt::Result {
    type Read = fn(&Counts) -> u64;
    let metrics: [(&str, &str, Read); 3] = [
        (
            "marline_path_sent_bytes_total",
            "Bytes of UDP payload sent on paths, by their number.",
            |counts| counts.sent,
        ),
        (
            "marline_path_received_bytes_total",
            "Bytes of UDP payload received on paths, by their number.",
            |counts| counts.received,
        ),
        (
            "marline_path_packets_lost_total",
            "Packets of this server lost on paths, by their number.",
            |counts| counts.lost,
        ),
    ];
    for (name, help, read) in metrics {
        head(out, name, "counter", help)?;
        let used = |counts: &Counts| counts.sent + counts.received > 0;
        for (place, counts) in counts.iter().enumerate().filter(|(_, c)| used(c)) {
            writeln!(out, "{name}{{path=\"{}\"}} {}", label(place), read(counts))?;
        }
    }
    Ok(())
}
