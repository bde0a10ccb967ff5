//! Stores of records.

use std::fmt::Debug;
use std::time::Duration;

use super::{PathKey, PathRecord};
use crate::Instant;
use crate::settings::{Domain, Field, Settings};

/// Keeps the records of paths. Connections of several threads and endpoints share it.
///
/// A connection reads from it when it begins and updates it when it ends, so it may lock; it must not
/// block for I/O. An expired record is treated as absent.
pub trait PathStore: Send + Sync + Debug {
    /// The record of `key`.
    fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord>;

    /// Has `change` modify the record of `key`, or an empty one, and sets its time to `now`. `change` must
    /// not call the store. A full store may evict any record afterwards.
    fn update(&self, now: Instant, key: &PathKey, change: &mut dyn FnMut(&mut PathRecord));

    /// Removes the record of `key`.
    fn forget(&self, now: Instant, key: &PathKey);

    /// Its counters; all zero for a store that does not count.
    fn statistics(&self) -> StoreStatistics {
        StoreStatistics::default()
    }
}

/// The counters of a store, for metrics. All but `records` are totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Records in memory, including expired ones that are not yet removed.
    pub records: u64,
    /// Lookups that found a record in memory.
    pub hits: u64,
    /// Lookups without a result.
    pub misses: u64,
    /// Records read into memory from the file or server that keeps them.
    pub fetched: u64,
    /// Changes written to the file or server.
    pub writes: u64,
    /// Changes that were not written: too many waited, or the server refused them.
    pub dropped_writes: u64,
    /// Failures of the file or server, and records that could not be decoded.
    pub errors: u64,
}

/// The limits of a store on the number and lifetime of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// The most records, at least 1.
    pub records: usize,
    /// Time for which a record is valid after its latest update.
    pub lifetime: Duration,
    /// The most records of one network (an IPv4 /24, an IPv6 /48), at least 1.
    pub of_one_network: usize,
}

impl StoreLimits {
    /// Its keys in settings. The lifetime of records is set in [`HistoryConfig`](super::HistoryConfig).
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "records",
            Domain::integer(1, 100_000_000),
            "Records that are kept in all",
            |c: &mut Self| &mut c.records,
        ),
        &Field::new(
            "records_per_network",
            Domain::integer(1, 100_000_000),
            "Records that are kept of one network (a /24 of IPv4, a /48 of IPv6)",
            |c: &mut Self| &mut c.of_one_network,
        ),
    ];
}

impl Default for StoreLimits {
    /// 65536 records for an hour, 256 of one network: enough for each of its IPv4 addresses, or for 256
    /// server names.
    fn default() -> Self {
        Self {
            records: 65_536,
            lifetime: Duration::from_secs(3600),
            of_one_network: 256,
        }
    }
}
