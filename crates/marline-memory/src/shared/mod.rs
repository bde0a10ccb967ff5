//! A store that several processes share.

mod error;
mod report;
mod server;
mod worker;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::{
    PathKey, PathRecord, PathStore, StoreLimits, StoreStatistics,
};

pub use self::error::ConnectError;
pub use self::report::ServerState;

use self::report::Reporter;
use self::server::Server;
use self::worker::Worker;
use crate::backlog::Backlog;
use crate::cache::Cache;
use crate::work::WorkQueue;

/// Maximum number of queued reads. Keys of discarded reads are requested again by the next connection
/// that uses them.
const MAX_READS: usize = 1024;

/// Maximum number of queued changes.
const MAX_CHANGES: usize = 8192;

/// Age from which on a cached record is refreshed, because other processes may have updated it.
const REFRESH_AGE: Duration = Duration::from_secs(10);

/// Time for which a drop waits for queued changes to be written.
const DROP_TIMEOUT: Duration = Duration::from_secs(1);

/// A store that several processes share, on a server with the Redis protocol (Valkey, Redis).
///
/// Calls use only the memory of this process. A record that is missing there, or older than ten seconds,
/// is read from the server in the background, and is available to the connection's next call or to the
/// next connection. Changes are written in the background. A server that is slow, hangs or is
/// unreachable delays no call: learning continues in memory. The queues for the server are bounded; when
/// they are full, the oldest jobs are discarded.
///
/// The last writer wins: of two records of a path, the merged record has the windows of the later write,
/// if it has any, and the newer capacity. A capacity that [careful resume] takes from its record is
/// removed from the server's record, but not from the memories of other processes that have read it.
///
/// A record is a string under `NAMESPACE:1/NETWORK/BITS/SERVER`, and expires. Records are not
/// authenticated: every client with write access to the server is trusted. Values that are not records
/// are ignored. Wall clocks should agree to within seconds.
///
/// [careful resume]: marline_proto::coordination::careful_resume
#[derive(Debug)]
pub struct SharedStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cache: Cache,
    work: WorkQueue<Queues>,
}

#[derive(Debug)]
struct Queues {
    reads: Backlog<()>,
    changes: Backlog<Change>,
}

/// A change to a record on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Merges the record with the one in memory.
    Write {
        /// Time of a capacity that was taken from the record in memory.
        taken: Option<Instant>,
    },
    /// Deletes the record.
    Forget,
}

impl Change {
    fn join(&mut self, later: Self) {
        *self = match (*self, later) {
            (Self::Write { taken: before }, Self::Write { taken }) => Self::Write {
                taken: before.max(taken),
            },
            // The record on the server must not be merged with one written after the deletion.
            (Self::Forget, Self::Write { .. }) => Self::Write {
                taken: Some(Instant::from_nanos(u64::MAX)),
            },
            (_, Self::Forget) => Self::Forget,
        }
    }
}

impl SharedStore {
    /// Creates a store at `url`, such as `redis://user:password@host:6379/0` or
    /// `redis+unix:///run/valkey.sock`, shared with all processes that use the same `namespace`. `now`
    /// and `unix_time`, the time since 1970, are the same point in time on the clock of later calls and
    /// on the wall clock.
    ///
    /// Returns immediately. The connection is established in the background, and again whenever it is
    /// lost.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] for an invalid URL or namespace. A server that does not answer is not an error
    /// here; it is counted in [`statistics`](PathStore::statistics).
    pub fn connect(
        url: &str,
        namespace: &str,
        limits: StoreLimits,
        now: Instant,
        unix_time: Duration,
    ) -> Result<Self, ConnectError> {
        Self::start(url, namespace, limits, now, unix_time, None)
    }

    /// As [`connect`](Self::connect), but also checks at once whether the server is usable, and passes every
    /// change of its state to `report`, on the thread that communicates with the server.
    ///
    /// # Errors
    ///
    /// As of [`connect`](Self::connect).
    pub fn connect_reporting(
        url: &str,
        namespace: &str,
        limits: StoreLimits,
        now: Instant,
        unix_time: Duration,
        report: impl Fn(ServerState) + Send + 'static,
    ) -> Result<Self, ConnectError> {
        let report = Some(Reporter::new(Box::new(report)));
        Self::start(url, namespace, limits, now, unix_time, report)
    }

    fn start(
        url: &str,
        namespace: &str,
        limits: StoreLimits,
        now: Instant,
        unix_time: Duration,
        reporter: Option<Reporter>,
    ) -> Result<Self, ConnectError> {
        let server = Server::new(url, namespace)?;
        let shared = Arc::new(Shared {
            cache: Cache::new(limits, now, unix_time),
            work: WorkQueue::new(Queues {
                reads: Backlog::new(MAX_READS),
                changes: Backlog::new(MAX_CHANGES),
            }),
        });
        let worker = Worker::new(Arc::clone(&shared), server, reporter);
        thread::Builder::new()
            .name("marline-memory".into())
            .spawn(move || worker.run())
            .map_err(ConnectError::Thread)?;
        Ok(Self { shared })
    }

    /// Waits until all earlier reads and writes are completed, at most for `timeout`. Returns whether they
    /// are.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.shared.work.flush(timeout)
    }

    fn request_read(&self, key: &PathKey) {
        self.shared.work.put(|queues| {
            queues.reads.push(key, (), |(), ()| ());
        });
    }

    fn change(&self, key: &PathKey, change: Change) {
        let Shared { cache, work } = &*self.shared;
        if work.put(|queues| queues.changes.push(key, change, Change::join)) {
            cache.counters.dropped_writes.add(1);
        }
    }
}

impl PathStore for SharedStore {
    fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord> {
        let record = self.shared.cache.recall(now, key);
        if record
            .as_ref()
            .is_none_or(|record| now - record.seen_at >= REFRESH_AGE)
        {
            self.request_read(key);
        }
        record
    }

    fn update(&self, now: Instant, key: &PathKey, change: &mut dyn FnMut(&mut PathRecord)) {
        let taken = self.shared.cache.update(now, key, change);
        self.change(key, Change::Write { taken });
    }

    fn forget(&self, now: Instant, key: &PathKey) {
        self.shared.cache.forget(now, key);
        self.change(key, Change::Forget);
    }

    fn statistics(&self) -> StoreStatistics {
        self.shared.cache.statistics()
    }
}

impl Drop for SharedStore {
    /// Waits for queued changes to be written, at most a second. The thread ends on its own.
    fn drop(&mut self) {
        self.shared.work.stop(DROP_TIMEOUT);
    }
}

#[cfg(test)]
mod tests;
