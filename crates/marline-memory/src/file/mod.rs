//! A store that a file keeps while no process runs.

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

use self::disk::Disk;
use self::writer::Writer;
use crate::backlog::Backlog;
use crate::front::Front;
use crate::work::Work;

/// Keys that may wait to be written; with more, all of the memory is.
const MOST_CHANGES: usize = 8192;

/// Records that outlive the process in a file of its own.
///
/// All of them are in memory, and calls look there. What they change is written by one thread, half a
/// second of changes in one transaction, and on drop, which waits for that. A process that dies in between
/// loses what was not written; the file stays whole. A file belongs to one process at a time.
///
/// The file is a [redb](https://www.redb.org) database of the names and values of records, in format 1.
#[derive(Debug)]
pub struct FileStore {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    front: Front,
    work: Work<Changes>,
}

#[derive(Debug)]
struct Changes {
    /// Records to write as they are then, or to take out.
    keys: Backlog<()>,
    /// All has to be written, what `keys` has no room for among it.
    is_all: bool,
}

impl FileStore {
    /// Opens the file at `path`, or begins it, and reads all of it. `now` and `unix_time`, the time since
    /// 1970, are one moment on the clock that later calls tell and on the wall.
    ///
    /// Records are as old as the wall says. Where that clock went backwards in between, they are as old
    /// as they were when they were written.
    ///
    /// # Errors
    ///
    /// [`OpenError`] says what to do. A file that cannot be used is left as it is.
    pub fn open(
        path: impl AsRef<Path>,
        limits: StoreLimits,
        now: Instant,
        unix_time: Duration,
    ) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let front = Front::new(limits, now, unix_time);
        let (disk, is_ahead) = Disk::open(path, &front)?;
        let shared = Arc::new(Shared {
            front,
            work: Work::new(Changes {
                keys: Backlog::new(MOST_CHANGES),
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

    /// Waits until what was changed before is in the file, for `most` at most. Whether it is.
    pub fn flush(&self, most: Duration) -> bool {
        self.shared.work.flush(most)
    }

    fn changed(&self, key: &PathKey) {
        self.shared.work.put(|changes| {
            changes.is_all |= changes.keys.push(key, (), |(), ()| ());
        });
    }
}

impl PathStore for FileStore {
    fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord> {
        self.shared.front.recall(now, key)
    }

    fn update(&self, now: Instant, key: &PathKey, change: &mut dyn FnMut(&mut PathRecord)) {
        self.shared.front.update(now, key, change);
        self.changed(key);
    }

    fn forget(&self, now: Instant, key: &PathKey) {
        self.shared.front.forget(now, key);
        self.changed(key);
    }

    fn statistics(&self) -> StoreStatistics {
        self.shared.front.statistics()
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.shared.work.stop(Duration::MAX);
        if let Some(thread) = self.thread.take() {
            // A panic in it was told already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
