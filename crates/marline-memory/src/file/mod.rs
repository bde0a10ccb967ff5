//! A store that is persisted in a file.

mod disk;
mod error;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::{
    PathKey, PathRecord, PathStore, StoreLimits, StoreStatistics,
};

pub use self::error::OpenError;

use self::disk::{Disk, Opened};
use self::writer::Writer;
use crate::backlog::Backlog;
use crate::cache::Cache;
use crate::work::WorkQueue;

/// Maximum number of changed keys queued for writing; beyond that, all records are written.
const MAX_CHANGES: usize = 8192;

/// A store that persists its records in a file, which it uses exclusively.
///
/// All records are in memory, and calls use only that. A thread writes the changes: those of half a
/// second in one transaction, and the remaining ones on drop, which waits for it. A process that
/// terminates in between loses only what was not written; the file stays consistent.
///
/// The file is a [redb](https://www.redb.org) database of encoded keys and records, in format 1.
#[derive(Debug)]
pub struct FileStore {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    cache: Cache,
    work: WorkQueue<Changes>,
}

#[derive(Debug)]
struct Changes {
    /// Keys whose records are to be written, or removed if there is none any more.
    keys: Backlog<()>,
    /// Whether all records have to be written, including keys that `keys` discarded.
    is_all: bool,
}

impl FileStore {
    /// Opens or creates the file at `path`, and loads it. `now` and `unix_time`, the time since 1970, are
    /// the same point in time on the clock of later calls and on the wall clock.
    ///
    /// Records age by the wall clock. If that went backwards, they have the age that they had when they
    /// were written.
    ///
    /// # Errors
    ///
    /// [`OpenError`] with advice to the operator. A file that cannot be used is not modified.
    pub fn open(
        path: impl AsRef<Path>,
        limits: StoreLimits,
        now: Instant,
        unix_time: Duration,
    ) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let cache = Cache::new(limits, now, unix_time);
        let Opened { disk, is_ahead } = Disk::open(path, &cache)?;
        let shared = Arc::new(Shared {
            cache,
            work: WorkQueue::new(Changes {
                keys: Backlog::new(MAX_CHANGES),
                is_all: is_ahead,
            }),
        });
        let writer = Writer::new(Arc::clone(&shared), disk, limits.records);
        let thread = thread::Builder::new()
            .name("marline-memory".into())
            .spawn(move || writer.run())
            .map_err(|error| OpenError::io(path, error))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Waits until all earlier changes are in the file, at most for `timeout`. Returns whether they are.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.shared.work.flush(timeout)
    }

    fn changed(&self, key: &PathKey) {
        self.shared.work.put(|changes| {
            changes.is_all |= changes.keys.push(key, (), |(), ()| ());
        });
    }
}

impl PathStore for FileStore {
    fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord> {
        self.shared.cache.recall(now, key)
    }

    fn update(&self, now: Instant, key: &PathKey, change: &mut dyn FnMut(&mut PathRecord)) {
        self.shared.cache.update(now, key, change);
        self.changed(key);
    }

    fn forget(&self, now: Instant, key: &PathKey) {
        self.shared.cache.forget(now, key);
        self.changed(key);
    }

    fn statistics(&self) -> StoreStatistics {
        self.shared.cache.statistics()
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.shared.work.stop(Duration::MAX);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
