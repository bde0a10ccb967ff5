//! Records in memory, in front of where they are kept, by a clock that goes back before its caller's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::{
    Capacity, MemoryStore, PathKey, PathRecord, PathStore, StoreLimits, StoreStatistics, Windows,
};

use crate::statistics::Counters;
use crate::value;

/// Time before the caller's epoch: 146 years. A clock begins with its process, and what was learnt before
/// has to be older than that.
const BEFORE_EPOCH: Duration = Duration::from_nanos(1 << 62);

/// Answers at once. Inside, moments are [`BEFORE_EPOCH`] later than the caller's, so that none is too
/// early to be told. Outside, what was before the caller's epoch is of the epoch: what it is too old for
/// is decided here.
#[derive(Debug)]
pub(crate) struct Front {
    memory: MemoryStore,
    lifetime: Duration,
    /// When it began, by the caller's clock and on the wall.
    began: (Instant, Duration),
    /// The latest moment that a caller told, in nanoseconds; there is no other clock.
    latest: AtomicU64,
    pub(crate) counters: Counters,
}

impl Front {
    pub(crate) fn new(limits: StoreLimits, now: Instant, unix_time: Duration) -> Self {
        Self {
            memory: MemoryStore::new(limits),
            lifetime: limits.lifetime,
            began: (now, unix_time),
            latest: AtomicU64::new(now.as_nanos()),
            counters: Counters::default(),
        }
    }

    pub(crate) fn statistics(&self) -> StoreStatistics {
        self.counters.read(self.memory.len())
    }

    /// What is known under `key`, in the caller's moments.
    pub(crate) fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord> {
        let now = self.enter(now);
        let Some(mut record) = self.memory.recall(now, key) else {
            self.counters.misses.add(1);
            return None;
        };
        self.counters.hits.add(1);
        self.leave(now, &mut record);
        Some(record)
    }

    /// Has `change` rewrite what is known under `key`. The moment of the capacity that it took away, by
    /// the clock inside.
    pub(crate) fn update(
        &self,
        now: Instant,
        key: &PathKey,
        change: &mut dyn FnMut(&mut PathRecord),
    ) -> Option<Instant> {
        let now = self.enter(now);
        let mut taken = None;
        self.memory.update(now, key, &mut |record| {
            let inside = record.capacity;
            self.leave(now, record);
            let shown = record.capacity;
            change(record);
            taken = shown
                .and(inside)
                .filter(|_| record.capacity.is_none())
                .map(|capacity| capacity.at);
            record.capacity = if record.capacity == shown {
                shown.and(inside)
            } else {
                record.capacity.map(|capacity| Capacity {
                    at: capacity.at + BEFORE_EPOCH,
                    ..capacity
                })
            };
        });
        taken
    }

    pub(crate) fn forget(&self, now: Instant, key: &PathKey) {
        self.memory.forget(self.enter(now), key);
    }

    /// The latest moment, by the clock inside.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.latest.load(Ordering::Relaxed)) + BEFORE_EPOCH
    }

    /// What is known under `key`, in the form that is kept, and how long it will hold.
    pub(crate) fn value(&self, key: &PathKey) -> Option<(Vec<u8>, Duration)> {
        let now = self.now();
        let record = self.memory.recall(now, key)?;
        let left = self.lifetime - (now - record.seen_at);
        Some((self.encode(&record), left))
    }

    /// Whether anything is known under `key`.
    pub(crate) fn holds(&self, key: &PathKey) -> bool {
        self.memory.recall(self.now(), key).is_some()
    }

    /// What is known, page by page, like [`MemoryStore::page`], in the form that is kept.
    pub(crate) fn page(&self, after: u64, most: usize) -> Vec<(u64, PathKey, Vec<u8>)> {
        let page = self.memory.page(self.now(), after, most).into_iter();
        page.map(|updated| (updated.update, updated.key, self.encode(&updated.record)))
            .collect()
    }

    /// Reads what was kept; what is too old is none.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Decoded {
        let now = self.now();
        match value::decode(bytes, now, self.unix_time()) {
            None => Decoded::Broken,
            Some(record) if record.is_expired(now, self.lifetime) => Decoded::Old,
            Some(record) => Decoded::Record(record),
        }
    }

    /// Takes in what was kept elsewhere, in moments of the clock inside. Of two records, the windows are
    /// those of the one that was written last, if it has any, and the capacity is the newer one. `taken` is the
    /// moment of a capacity that somebody here took; what is no newer was taken with it.
    pub(crate) fn absorb(&self, key: &PathKey, mut kept: PathRecord, taken: Option<Instant>) {
        kept.capacity = kept
            .capacity
            .filter(|capacity| taken.is_none_or(|taken| capacity.at > taken));
        let known = self.memory.recall(self.now(), key);
        if known.as_ref().is_some_and(|known| !adds(&kept, known)) {
            return;
        }
        let seen_at = known.map_or(kept.seen_at, |known| known.seen_at.max(kept.seen_at));
        self.memory.update(seen_at, key, &mut |record| {
            if has_later_windows(&kept, record) {
                record.windows = kept.windows.clone();
                record.samples = kept.samples;
            }
            if is_newer(kept.capacity, record.capacity) {
                record.capacity = kept.capacity;
            }
        });
        self.counters.fetched.add(1);
    }

    fn encode(&self, record: &PathRecord) -> Vec<u8> {
        value::encode(record, self.now(), self.unix_time())
    }

    /// The time since 1970 at the latest moment.
    pub(crate) fn unix_time(&self) -> Duration {
        let (began, unix_time) = self.began;
        unix_time.saturating_add(self.now() - (began + BEFORE_EPOCH))
    }

    fn enter(&self, now: Instant) -> Instant {
        self.latest.fetch_max(now.as_nanos(), Ordering::Relaxed);
        now + BEFORE_EPOCH
    }

    fn leave(&self, now: Instant, record: &mut PathRecord) {
        record.seen_at = record.seen_at - BEFORE_EPOCH;
        let young = |capacity: &Capacity| now - capacity.at < self.lifetime;
        record.capacity = record.capacity.filter(young).map(|capacity| Capacity {
            at: capacity.at - BEFORE_EPOCH,
            ..capacity
        });
    }
}

/// What became of bytes that were kept.
#[derive(Debug, PartialEq)]
pub(crate) enum Decoded {
    Record(PathRecord),
    Old,
    Broken,
}

fn adds(kept: &PathRecord, known: &PathRecord) -> bool {
    has_later_windows(kept, known) || is_newer(kept.capacity, known.capacity)
}

/// A record may have been written for other reasons than a window.
fn has_later_windows(kept: &PathRecord, known: &PathRecord) -> bool {
    let none = Windows::default();
    known.windows == none || (kept.windows != none && kept.seen_at > known.seen_at)
}

fn is_newer(kept: Option<Capacity>, known: Option<Capacity>) -> bool {
    kept.is_some_and(|kept| known.is_none_or(|known| kept.at > known.at))
}

#[cfg(test)]
mod tests;
