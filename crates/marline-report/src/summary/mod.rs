//! Statistics of qlog files.

mod bundle;
mod bundle_history;
mod history;
mod meter;
mod render;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ordered::Ordered;
use crate::qlog::{self, Event, Source};
use bundle::LoggedDecision;
use history::HistoryMeter;
use meter::Meter;

pub use bundle::{Bundle, Decision};
pub use bundle_history::BundleHistory;
pub use history::{InitialWindow, ResumePhase};

/// Statistics of a qlog file.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The file.
    pub file: PathBuf,
    /// Its connections, in order of appearance.
    pub connections: Vec<Connection>,
    /// Records that could not be read.
    pub skipped: usize,
    /// The error of the first of them.
    pub first_error: Option<String>,
}

/// Statistics of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Its name in the log; may be empty.
    pub group: String,
    /// The trace that it was logged in.
    pub source: Arc<Source>,
    /// Its first event, in seconds since the log's reference time.
    pub start_s: f64,
    /// All paths together; times in states only if there is one path.
    pub total: Numbers,
    /// Each path, in order of appearance.
    pub paths: Vec<(String, Numbers)>,
    /// The bundle that it belongs to, if any.
    pub bundles: Vec<Bundle>,
    /// Initial windows of its paths, if logged.
    pub initial_windows: Vec<InitialWindow>,
    /// Phases of Careful Resume, in the order of the log.
    pub careful_resume: Vec<ResumePhase>,
}

/// Statistics of a connection or a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// From its first event to the last, in seconds.
    pub duration_s: f64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes of the packets sent.
    pub bytes_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of the packets received.
    pub bytes_received: u64,
    /// Packets dropped without processing.
    pub packets_dropped: u64,
    /// Packets declared lost, by trigger.
    pub lost: BTreeMap<String, u64>,
    /// Packets declared lost that were acknowledged later.
    pub spurious_losses: u64,
    /// RTT in seconds, if there were samples.
    pub rtt_s: Option<Rtt>,
    /// The largest congestion window, in bytes.
    pub max_congestion_window: Option<u64>,
    /// The most bytes in flight.
    pub max_bytes_in_flight: Option<u64>,
    /// Seconds in each state of the congestion controller, in order of appearance.
    pub states: Vec<(String, f64)>,
}

/// Round-trip times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rtt {
    /// Number of samples.
    pub samples: usize,
    /// The smallest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Numbers {
    /// Packets declared lost.
    pub fn packets_lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Packets declared lost among those sent; `None` if none was sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        (self.packets_sent > 0).then(|| self.packets_lost() as f64 / self.packets_sent as f64)
    }

    /// Bits per second sent, over the whole duration.
    pub fn throughput_sent(&self) -> Option<f64> {
        self.rate(self.bytes_sent)
    }

    /// Bits per second received, over the whole duration.
    pub fn throughput_received(&self) -> Option<f64> {
        self.rate(self.bytes_received)
    }

    fn rate(&self, bytes: u64) -> Option<f64> {
        (self.duration_s > 0.0).then(|| bytes as f64 * 8.0 / self.duration_s)
    }
}

impl Summary {
    /// Reads a qlog file to its end. Malformed records are skipped and counted.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has no events.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, qlog::Error> {
        let path = path.as_ref();
        Self::complete(path, qlog::read(path)?)
    }

    /// Summarizes `events` of `file`, of which there must be one.
    ///
    /// # Errors
    ///
    /// If reading fails, or there are no events.
    pub fn complete(
        file: &Path,
        events: impl IntoIterator<Item = Result<Event, qlog::Error>>,
    ) -> Result<Self, qlog::Error> {
        let summary = Self::of(file, events)?;
        if summary.connections.is_empty() {
            let reason = summary.first_error;
            return Err(qlog::Error::NoEvents {
                path: file.to_owned(),
                reason: reason.unwrap_or_else(|| "it has no record of one".to_owned()),
            });
        }
        Ok(summary)
    }

    /// Summarizes `events` of `file`.
    ///
    /// # Errors
    ///
    /// If reading fails; malformed records are not errors.
    pub fn of(
        file: impl Into<PathBuf>,
        events: impl IntoIterator<Item = Result<Event, qlog::Error>>,
    ) -> Result<Self, qlog::Error> {
        let mut meters = Ordered::default();
        let (mut skipped, mut first_error) = (0, None);
        for event in events {
            let event = match event {
                Ok(event) => event,
                Err(error @ (qlog::Error::Io { .. } | qlog::Error::NoEvents { .. })) => {
                    return Err(error);
                }
                Err(qlog::Error::Record { record, reason, .. }) => {
                    skipped += 1;
                    first_error.get_or_insert_with(|| format!("record {record}: {reason}"));
                    continue;
                }
            };
            meters
                .get_or_insert_with(&ConnectionKey::of(&event), || ConnectionMeter::new(&event))
                .add(&event);
        }
        Ok(Self {
            file: file.into(),
            connections: meters
                .into_values()
                .into_iter()
                .map(ConnectionMeter::finish)
                .collect(),
            skipped,
            first_error,
        })
    }
}

/// A connection of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConnectionKey {
    trace: usize,
    group: String,
}

impl ConnectionKey {
    fn of(event: &Event) -> Self {
        Self {
            trace: event.source.index,
            group: event.group.clone(),
        }
    }
}

/// Statistics of a connection and each of its paths.
struct ConnectionMeter {
    group: String,
    source: Arc<Source>,
    total: Meter,
    paths: Ordered<String, PathMeter>,
    start_s: f64,
    bundles: Ordered<u64, Bundle>,
    history: HistoryMeter,
}

/// Statistics of a path.
struct PathMeter {
    name: String,
    meter: Meter,
}

impl ConnectionMeter {
    fn new(first: &Event) -> Self {
        Self {
            group: first.group.clone(),
            source: Arc::clone(&first.source),
            total: Meter::default(),
            paths: Ordered::default(),
            start_s: first.time_s,
            bundles: Ordered::default(),
            history: HistoryMeter::default(),
        }
    }

    fn add(&mut self, event: &Event) {
        self.total.add(event);
        self.history.add(event);
        self.start_s = self.start_s.min(event.time_s);
        if let Some(LoggedDecision { bundle, decision }) = Decision::of(event) {
            self.decided(bundle, decision);
        }
        if !meter::concerns_path(event) {
            return;
        }
        let path = || PathMeter {
            name: event.tuple.clone(),
            meter: Meter::default(),
        };
        let path = self.paths.get_or_insert_with(&event.tuple, path);
        path.meter.add(event);
    }

    fn decided(&mut self, number: u64, decision: Decision) {
        let bundle = || Bundle {
            number,
            decisions: Vec::new(),
        };
        let bundle = self.bundles.get_or_insert_with(&number, bundle);
        bundle.decisions.push(decision);
    }

    fn finish(self) -> Connection {
        let mut total = self.total.finish();
        let mut bundles = self.bundles.into_values();
        for bundle in &mut bundles {
            let decisions = &mut bundle.decisions;
            decisions.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        }
        let paths = self.paths.into_values().into_iter();
        let paths: Vec<_> = paths.map(|path| (path.name, path.meter.finish())).collect();
        if paths.len() > 1 {
            total.states.clear();
        }
        Connection {
            group: self.group,
            source: self.source,
            start_s: self.start_s,
            total,
            paths,
            bundles,
            initial_windows: self.history.initial_windows,
            careful_resume: self.history.careful_resume,
        }
    }
}

#[cfg(test)]
mod tests;
