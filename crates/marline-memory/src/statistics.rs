//! Counters of a store, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use marline_proto::coordination::history::StoreStatistics;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) fetched: Counter,
    pub(crate) writes: Counter,
    pub(crate) dropped_writes: Counter,
    pub(crate) errors: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn read(&self, records: usize) -> StoreStatistics {
        StoreStatistics {
            records: records as u64,
            hits: self.hits.get(),
            misses: self.misses.get(),
            fetched: self.fetched.get(),
            writes: self.writes.get(),
            dropped_writes: self.dropped_writes.get(),
            errors: self.errors.get(),
        }
    }
}
