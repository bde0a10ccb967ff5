//! What a store did, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a store holds, and what it did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Records in memory, those included that are too old and not yet taken out.
    pub records: u64,
    /// Questions that memory had a record for.
    pub hits: u64,
    /// Questions that it had none for.
    pub misses: u64,
    /// Records that came into memory from the file or the server.
    pub fetched: u64,
    /// Changes that the file or the server took.
    pub writes: u64,
    /// Changes that neither will see: more came than could wait, or the server refused them.
    pub dropped_writes: u64,
    /// Times that the file or the server failed, and records that could not be read.
    pub errors: u64,
}

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
    pub(crate) fn read(&self, records: usize) -> Statistics {
        Statistics {
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
