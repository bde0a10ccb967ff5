//! Records in memory, as a cache of a file or a server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::{
    Capacity, MemoryStore, PathKey, PathRecord, PathStore, StoreLimits, StoreStatistics,
    UpdatedRecord, Windows,
};

use crate::statistics::Counters;
use crate::value;

#[cfg(test)]
mod tests;

/// Offset of the internal clock: 146 years. The caller's clock may start with its process, but records
/// learned earlier must have times before that.
const EPOCH_OFFSET: Duration = Duration::from_nanos(1 << 62);

/// The cache of a store, whose calls never wait.
///
/// Internal times are [`EPOCH_OFFSET`] later than the caller's, so that times before the caller's epoch
/// can be represented. Times before the caller's epoch are returned as its epoch; expiry is decided by
/// internal times.
#[derive(Debug)]
pub(crate) struct Cache {
    memory: MemoryStore,
    lifetime: Duration,
    /// Creation time on the caller's clock.
    created: Instant,
    /// Creation time on the wall clock, since 1970.
    created_unix: Duration,
    /// Latest time passed by a caller, in nanoseconds; there is no other clock.
    latest: AtomicU64,
    pub(crate) counters: Counters,
}

impl Cache {
    pub(crate) fn new(limits: StoreLimits, now: Instant, unix_time: Duration) -> Self {
        Self {
            memory: MemoryStore::new(limits),
            lifetime: limits.lifetime,
            created: now,
            created_unix: unix_time,
            latest: AtomicU64::new(now.as_nanos()),
            counters: Counters::default(),
        }
    }

    pub(crate) fn statistics(&self) -> StoreStatistics {
        self.counters.read(self.memory.len())
    }

    /// The record of `key`, in the caller's times.
    pub(crate) fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord> {
        let now = self.to_internal(now);
        let Some(mut record) = self.memory.recall(now, key) else {
            self.counters.misses.add(1);
            return None;
        };
        self.counters.hits.add(1);
        self.make_external(now, &mut record);
        Some(record)
    }

    /// Modifies the record of `key` with `change`. If that removed the capacity, returns its internal time.
    pub(crate) fn update(
        &self,
        now: Instant,
        key: &PathKey,
        change: &mut dyn FnMut(&mut PathRecord),
    ) -> Option<Instant> {
        let now = self.to_internal(now);
        let mut taken = None;
        self.memory.update(now, key, &mut |record| {
            let internal = record.capacity;
            self.make_external(now, record);
            let external = record.capacity;
            change(record);
            taken = external
                .and(internal)
                .filter(|_| record.capacity.is_none())
                .map(|capacity| capacity.at);
            record.capacity = if record.capacity == external {
                external.and(internal)
            } else {
                record.capacity.map(|capacity| Capacity {
                    at: capacity.at + EPOCH_OFFSET,
                    ..capacity
                })
            };
        });
        taken
    }

    pub(crate) fn forget(&self, now: Instant, key: &PathKey) {
        self.memory.forget(self.to_internal(now), key);
    }

    /// The latest time, on the internal clock.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.latest.load(Ordering::Relaxed)) + EPOCH_OFFSET
    }

    /// The encoded record of `key`, and its remaining lifetime.
    pub(crate) fn value(&self, key: &PathKey) -> Option<StoredValue> {
        let now = self.now();
        let record = self.memory.recall(now, key)?;
        Some(StoredValue {
            bytes: self.encode(&record),
            left: self.lifetime - (now - record.seen_at),
        })
    }

    /// Whether there is a record of `key`.
    pub(crate) fn holds(&self, key: &PathKey) -> bool {
        self.memory.recall(self.now(), key).is_some()
    }

    /// Encoded records in pages, as [`MemoryStore::page`] returns them.
    pub(crate) fn page(&self, after: u64, most: usize) -> Vec<PageEntry> {
        let page = self.memory.page(self.now(), after, most).into_iter();
        page.map(
            |UpdatedRecord {
                 update: number,
                 key,
                 record,
             }| PageEntry {
                number,
                key,
                bytes: self.encode(&record),
            },
        )
        .collect()
    }

    /// Decodes a stored record.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Decoded {
        let now = self.now();
        match value::decode(bytes, now, self.unix_time()) {
            None => Decoded::Malformed,
            Some(record) if record.is_expired(now, self.lifetime) => Decoded::Expired,
            Some(record) => Decoded::Record(record),
        }
    }

    /// Merges a stored record with internal times into memory. The result has the windows of the later
    /// write, if it has any, and the newer capacity. `taken` is the time of a capacity that a caller in
    /// this process removed; a stored capacity that is not newer is removed as well.
    pub(crate) fn merge(&self, key: &PathKey, mut stored: PathRecord, taken: Option<Instant>) {
        stored.capacity = stored
            .capacity
            .filter(|capacity| taken.is_none_or(|taken| capacity.at > taken));
        let known = self.memory.recall(self.now(), key);
        if known.as_ref().is_some_and(|known| !adds(&stored, known)) {
            return;
        }
        let seen_at = known.map_or(stored.seen_at, |known| known.seen_at.max(stored.seen_at));
        self.memory.update(seen_at, key, &mut |record| {
            if has_later_windows(&stored, record) {
                record.windows = stored.windows.clone();
                record.samples = stored.samples;
            }
            if is_newer(stored.capacity, record.capacity) {
                record.capacity = stored.capacity;
            }
        });
        self.counters.fetched.add(1);
    }

    fn encode(&self, record: &PathRecord) -> Vec<u8> {
        value::encode(record, self.now(), self.unix_time())
    }

    /// The wall clock at the latest time, since 1970.
    pub(crate) fn unix_time(&self) -> Duration {
        let passed = self.now() - (self.created + EPOCH_OFFSET);
        self.created_unix.saturating_add(passed)
    }

    fn to_internal(&self, now: Instant) -> Instant {
        self.latest.fetch_max(now.as_nanos(), Ordering::Relaxed);
        now + EPOCH_OFFSET
    }

    fn make_external(&self, now: Instant, record: &mut PathRecord) {
        record.seen_at = record.seen_at - EPOCH_OFFSET;
        let young = |capacity: &Capacity| now - capacity.at < self.lifetime;
        record.capacity = record.capacity.filter(young).map(|capacity| Capacity {
            at: capacity.at - EPOCH_OFFSET,
            ..capacity
        });
    }
}

/// The result of decoding a stored record.
#[derive(Debug, PartialEq)]
pub(crate) enum Decoded {
    Record(PathRecord),
    /// The record has expired.
    Expired,
    /// The bytes are not a record.
    Malformed,
}

/// An encoded record.
#[derive(Debug, PartialEq)]
pub(crate) struct StoredValue {
    pub(crate) bytes: Vec<u8>,
    /// Remaining lifetime.
    pub(crate) left: Duration,
}

/// An encoded record of a page.
pub(crate) struct PageEntry {
    /// Number by which the next page is requested.
    pub(crate) number: u64,
    pub(crate) key: PathKey,
    pub(crate) bytes: Vec<u8>,
}

fn adds(stored: &PathRecord, known: &PathRecord) -> bool {
    has_later_windows(stored, known) || is_newer(stored.capacity, known.capacity)
}

/// Whether the windows of `stored` are newer. A record may have been written without any window.
fn has_later_windows(stored: &PathRecord, known: &PathRecord) -> bool {
    let none = Windows::default();
    known.windows == none || (stored.windows != none && stored.seen_at > known.seen_at)
}

fn is_newer(stored: Option<Capacity>, known: Option<Capacity>) -> bool {
    stored.is_some_and(|stored| known.is_none_or(|known| stored.at > known.at))
}
