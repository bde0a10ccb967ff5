//! Reports of a connection's paths, including those whose state the connection has discarded.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use marline::{ConnectionEvent, PathStats};

use crate::client::report::PathReport;
use crate::runtime::RuntimeHandle;

/// The most closed paths that are kept: over hours, an unstable link closes many.
const MAX_CLOSED: usize = 64;

/// The paths of one connection that were closed.
#[derive(Clone, Debug, Default)]
pub(super) struct PathLog(Arc<Mutex<Vec<Closed>>>);

#[derive(Debug)]
struct Closed {
    stats: PathStats,
    why: String,
}

impl PathLog {
    /// Follows `connection` until it ends.
    pub(super) fn of(connection: &marline::Connection, runtime: &RuntimeHandle) -> Self {
        let log = Self::default();
        let (writing, mut events) = (log.clone(), connection.events());
        let connection = connection.downgrade();
        runtime.spawn(async move {
            while let Some(event) = events.next().await {
                let ConnectionEvent::PathClosed { id, error } = event else {
                    continue;
                };
                let Some(connection) = connection.upgrade() else {
                    return;
                };
                let mut paths = connection.paths().into_iter();
                if let Some(stats) = paths.find(|stats| stats.id == id) {
                    let why = error.to_string();
                    writing.add(Closed { stats, why });
                }
            }
        });
        log
    }

    fn add(&self, closed: Closed) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() < MAX_CLOSED {
            log.push(closed);
        }
    }

    /// All paths in the order of their IDs; `present` are those that the connection knows.
    pub(super) fn reports(&self, present: &[PathStats], local: SocketAddr) -> Vec<PathReport> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let why = |id| {
            let closed = log.iter().find(|closed| closed.stats.id == id);
            closed.map(|closed| closed.why.clone())
        };
        let is_present = |closed: &&Closed| present.iter().any(|path| path.id == closed.stats.id);
        let forgotten = log.iter().filter(|closed| !is_present(closed));
        let paths = present.iter().chain(forgotten.map(|closed| &closed.stats));
        let report = |path: &PathStats| PathReport {
            id: path.id.0,
            local: path.local.unwrap_or(local),
            remote: path.remote,
            rtt_s: path.latest_rtt.map(|_| path.smoothed_rtt.as_secs_f64()),
            bytes_received: path.udp_received.bytes,
            bytes_sent: Some(path.udp_sent.bytes),
            packets_lost: Some(path.packets_lost),
            closed: why(path.id),
        };
        let mut reports: Vec<_> = paths.map(report).collect();
        reports.sort_by_key(|path| path.id);
        reports
    }
}
