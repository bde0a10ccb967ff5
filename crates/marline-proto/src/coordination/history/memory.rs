//! Records in memory, limited in number and age, with a fair share for each network.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::shares::{ALL, Shares};
use super::{PathKey, PathRecord, PathStore, StoreLimits, StoreStatistics};
use crate::Instant;

/// The number of expired records that an update removes: more than it can add.
const SWEPT: usize = 2;

/// A table of records in which no client can evict those of others.
///
/// When it is full, it evicts from the network with the most records, there from the address with the most,
/// and of that address the least recently updated record. So a client that invents server names evicts its
/// own records, one with many addresses those of its networks, and a network within its share loses none.
/// Records without a network ([`PathScope::Global`](super::PathScope::Global)) evict each other.
///
/// A record takes some hundred bytes. Operations take O(log n), under a lock.
#[derive(Debug)]
pub struct MemoryStore {
    limits: StoreLimits,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    entries: Shares<Entry>,
    keys: HashMap<PathKey, usize>,
    /// Entries by the number of their latest update.
    by_age: BTreeMap<u64, usize>,
    updates: u64,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct Entry {
    key: PathKey,
    record: PathRecord,
    updated: u64,
}

/// A record of a [`page`](MemoryStore::page).
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatedRecord {
    /// The number of its latest update.
    pub update: u64,
    /// Its key.
    pub key: PathKey,
    /// The record.
    pub record: PathRecord,
}

impl MemoryStore {
    /// An empty table.
    pub fn new(limits: StoreLimits) -> Self {
        Self {
            limits,
            table: Mutex::new(Table {
                entries: Shares::new(),
                keys: HashMap::new(),
                by_age: BTreeMap::new(),
                updates: 0,
                hits: 0,
                misses: 0,
            }),
        }
    }

    /// The number of records, including expired ones that are not yet removed.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// At most `most` records whose latest update has a number above `after`, in the order of their
    /// updates, to be written to a file. Updates are numbered from 1. A caller that continues from the
    /// last number of each page sees every record that stays in memory.
    ///
    /// It holds the lock for O(log n + `most`), and for the expired records that it skips.
    pub fn page(&self, now: Instant, after: u64, most: usize) -> Vec<UpdatedRecord> {
        let table = self.lock();
        let later = table
            .by_age
            .range((Bound::Excluded(after), Bound::Unbounded));
        let valid = later.filter_map(|(updated, id)| {
            let entry = table.entries.leaf(*id)?;
            let is_expired = entry.record.is_expired(now, self.limits.lifetime);
            (!is_expired).then(|| UpdatedRecord {
                update: *updated,
                key: entry.key.clone(),
                record: entry.record.clone(),
            })
        });
        valid.take(most).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(StoreLimits::default())
    }
}

impl PathStore for MemoryStore {
    fn recall(&self, now: Instant, key: &PathKey) -> Option<PathRecord> {
        let mut table = self.lock();
        let record = table.recall(now, key, &self.limits);
        match record {
            Some(_) => table.hits += 1,
            None => table.misses += 1,
        }
        record
    }

    fn update(&self, now: Instant, key: &PathKey, change: &mut dyn FnMut(&mut PathRecord)) {
        let mut table = self.lock();
        table.sweep(now, &self.limits);
        table.update(now, key, &self.limits, change);
    }

    fn forget(&self, _now: Instant, key: &PathKey) {
        let mut table = self.lock();
        if let Some(id) = table.keys.get(key).copied() {
            table.remove(id);
        }
    }

    fn statistics(&self) -> StoreStatistics {
        let table = self.lock();
        StoreStatistics {
            records: table.entries.len() as u64,
            hits: table.hits,
            misses: table.misses,
            ..StoreStatistics::default()
        }
    }
}

impl Table {
    fn recall(&self, now: Instant, key: &PathKey, limits: &StoreLimits) -> Option<PathRecord> {
        let entry = self.entries.leaf(*self.keys.get(key)?)?;
        let is_expired = entry.record.is_expired(now, limits.lifetime);
        (!is_expired).then(|| entry.record.clone())
    }

    /// Removes up to [`SWEPT`] expired records.
    fn sweep(&mut self, now: Instant, limits: &StoreLimits) {
        for _ in 0..SWEPT {
            let Some(id) = self.by_age.first_key_value().map(|(_, id)| *id) else {
                return;
            };
            let entry = self.entries.leaf(id);
            if entry.is_some_and(|entry| !entry.record.is_expired(now, limits.lifetime)) {
                return;
            }
            self.remove(id);
        }
    }

    fn update(
        &mut self,
        now: Instant,
        key: &PathKey,
        limits: &StoreLimits,
        change: &mut dyn FnMut(&mut PathRecord),
    ) {
        self.updates += 1;
        let updated = self.updates;
        if let Some(id) = self.keys.get(key).copied()
            && let Some(entry) = self.entries.leaf_mut(id)
        {
            if entry.record.is_expired(now, limits.lifetime) {
                entry.record = PathRecord::new(now);
            }
            change(&mut entry.record);
            entry.record.seen_at = now;
            self.by_age.remove(&entry.updated);
            entry.updated = updated;
            self.by_age.insert(updated, id);
            self.entries.touch(id, updated);
            return;
        }
        let mut record = PathRecord::new(now);
        change(&mut record);
        record.seen_at = now;
        let entry = Entry {
            key: key.clone(),
            record,
            updated,
        };
        let id = self.entries.insert(key.network, entry, updated);
        self.keys.insert(key.clone(), id);
        self.by_age.insert(updated, id);
        let network = self.entries.network(id);
        if network.leaves > limits.of_one_network.max(1) {
            self.remove(self.entries.fullest(network.id));
        } else if self.entries.len() > limits.records.max(1) {
            self.remove(self.entries.fullest(ALL));
        }
    }

    fn remove(&mut self, id: usize) {
        if let Some(entry) = self.entries.remove(id) {
            self.keys.remove(&entry.key);
            self.by_age.remove(&entry.updated);
        }
    }
}

#[cfg(test)]
mod tests;
