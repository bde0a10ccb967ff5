//! Where records are kept: the seam.

use std::fmt::Debug;
use std::time::Duration;

use super::{PathKey, PathRecord};
use crate::Instant;

/// Keeps what was learnt of paths. Connections share it, across threads and endpoints.
///
/// It is asked once when a connection begins and told once when one ends, so it may lock; it must not
/// block for I/O. A record that is too old is none.
pub trait PathStore: Send + Sync + Debug {
    /// What is known under `key`.
    fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord>;

    /// Has `change` rewrite what is known under `key`, an empty record if nothing is, and marks it as seen
    /// `now`. `change` must not ask the store. A store
    /// that is full may forget any record afterwards.
    fn update(&self, now: Instant, key: &PathKey, change: &mut dyn FnMut(&mut PathRecord));

    /// Forgets what is known under `key`.
    fn forget(&self, now: Instant, key: &PathKey);

    /// What it holds and did. A store that does not count says nothing.
    fn statistics(&self) -> StoreStatistics {
        StoreStatistics::default()
    }
}

/// What a store holds and has done, for metrics. All but `records` are totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Records in memory, including expired ones that are not yet removed.
    pub records: u64,
    /// Lookups that found a record in memory.
    pub hits: u64,
    /// Lookups that found none.
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

/// How much a store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Records in all, at least 1.
    pub records: usize,
    /// How long a record holds after its latest update.
    pub lifetime: Duration,
    /// Records of one network (a /24 of IPv4, a /48 of IPv6), at least 1.
    pub of_one_network: usize,
}

impl Default for StoreLimits {
    /// 65536 records for an hour, 256 of one network: one for each of its IPv4 addresses, or a client's for
    /// as many server names.
    fn default() -> Self {
        Self {
            records: 65_536,
            lifetime: Duration::from_secs(3600),
            of_one_network: 256,
        }
    }
}
