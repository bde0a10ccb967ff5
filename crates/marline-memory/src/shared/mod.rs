//! A store that many processes share.

mod error;
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

use self::server::Server;
use self::worker::Worker;
use crate::backlog::Backlog;
use crate::front::Front;
use crate::work::Work;

/// Questions that may wait for the server. What is older than so many more is asked by the next
/// connection again.
const MOST_QUESTIONS: usize = 1024;

/// Changes that may wait for the server.
const MOST_CHANGES: usize = 8192;

/// The age at which the server is asked about a record in memory: others may have learnt since.
const FRESH: Duration = Duration::from_secs(10);

/// How long a drop waits for what is still to be written.
const FAREWELL: Duration = Duration::from_secs(1);

/// Records that servers share by way of one that speaks the Redis protocol (Valkey, Redis).
///
/// Calls look into a memory of this process and nowhere else. What they miss there, or find older than ten
/// seconds, is asked for in the background: the answer is there for the connection's next question, or the
/// next connection. What they change is written in the background. A server that is slow, hangs or is
/// gone delays nothing: learning goes on in memory, and what waits for the server is bounded; where more
/// comes, the oldest goes.
///
/// The last writer wins: of two records of a path, the windows are those of the one that was written last,
/// if it has any, and the capacity is the newer one. What [careful resume] takes from its record is taken from the server's, but not
/// from the memories of other processes that have read it.
///
/// A record is a string under `NAMESPACE:1/NETWORK/BITS/SERVER`, and expires. Whoever can write there is
/// believed; a value that is no record is ignored. Clocks on the wall should agree to within seconds.
///
/// [careful resume]: marline_proto::coordination::careful_resume
#[derive(Debug)]
pub struct SharedStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    front: Front,
    work: Work<Queues>,
}

#[derive(Debug)]
struct Queues {
    questions: Backlog<()>,
    changes: Backlog<Change>,
}

/// What is to become of a record at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It is merged with the one in memory, of which a capacity of `taken` was taken.
    Write {
        taken: Option<Instant>,
    },
    Forget,
}

impl Change {
    fn join(&mut self, later: Self) {
        *self = match (*self, later) {
            (Self::Write { taken: before }, Self::Write { taken }) => Self::Write {
                taken: before.max(taken),
            },
            // What was known is known no more; what comes afterwards starts from nothing.
            (Self::Forget, Self::Write { .. }) => Self::Write {
                taken: Some(Instant::from_nanos(u64::MAX)),
            },
            (_, Self::Forget) => Self::Forget,
        }
    }
}

impl SharedStore {
    /// A store at `url`, as in `redis://user:password@host:6379/0` or `redis+unix:///run/valkey.sock`, for
    /// all that name the same `namespace`. `now` and `unix_time`, the time since 1970, are one moment on the
    /// clock that later calls tell and on the wall.
    ///
    /// It returns at once; the connection is made in the background, and made again whenever it is lost.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] for a URL or a namespace that is none. A server that does not answer is no error:
    /// [`statistics`](PathStore::statistics) count it.
    pub fn connect(
        url: &str,
        namespace: &str,
        limits: StoreLimits,
        now: Instant,
        unix_time: Duration,
    ) -> Result<Self, ConnectError> {
        let server = Server::new(url, namespace)?;
        let shared = Arc::new(Shared {
            front: Front::new(limits, now, unix_time),
            work: Work::new(Queues {
                questions: Backlog::new(MOST_QUESTIONS),
                changes: Backlog::new(MOST_CHANGES),
            }),
        });
        let worker = Worker::new(Arc::clone(&shared), server);
        thread::Builder::new()
            .name("marline-memory".into())
            .spawn(move || worker.run())
            .map_err(ConnectError::Thread)?;
        Ok(Self { shared })
    }

    /// Waits until what was asked and changed before is answered and written, for `most` at most. Whether
    /// it is.
    pub fn flush(&self, most: Duration) -> bool {
        self.shared.work.flush(most)
    }

    fn ask(&self, key: &PathKey) {
        self.shared.work.put(|queues| {
            queues.questions.push(key, (), |(), ()| ());
        });
    }

    fn change(&self, key: &PathKey, change: Change) {
        let Shared { front, work } = &*self.shared;
        if work.put(|queues| queues.changes.push(key, change, Change::join)) {
            front.counters.dropped_writes.add(1);
        }
    }
}

impl PathStore for SharedStore {
    fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord> {
        let record = self.shared.front.recall(now, key);
        if record
            .as_ref()
            .is_none_or(|record| now - record.seen_at >= FRESH)
        {
            self.ask(key);
        }
        record
    }

    fn update(&self, now: Instant, key: &PathKey, change: &mut dyn FnMut(&mut PathRecord)) {
        let taken = self.shared.front.update(now, key, change);
        self.change(key, Change::Write { taken });
    }

    fn forget(&self, now: Instant, key: &PathKey) {
        self.shared.front.forget(now, key);
        self.change(key, Change::Forget);
    }

    fn statistics(&self) -> StoreStatistics {
        self.shared.front.statistics()
    }
}

impl Drop for SharedStore {
    /// Waits for what is to be written, a second at most; then the thread ends by itself.
    fn drop(&mut self) {
        self.shared.work.stop(FAREWELL);
    }
}

#[cfg(test)]
mod tests;
