//! The dynamic table (RFC 9204, section 3.2), of either side.

use super::field;
use bytes::Bytes;
use std::collections::VecDeque;

/// Entries in the order of insertion. Indices are absolute (RFC 9204, section 3.2.4).
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    /// Entries evicted so far: the absolute index of the oldest one left.
    evicted: u64,
    /// Bytes inserted so far, with those of evicted entries.
    inserted: u64,
    capacity: usize,
}

/// A field line in the table.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: Bytes,
    pub(super) value: Bytes,
    /// Bytes inserted before this entry.
    offset: u64,
}

impl Table {
    /// Entries inserted so far.
    pub(super) fn insert_count(&self) -> u64 {
        self.evicted + self.entries.len() as u64
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The absolute index of the oldest entry, or of the next one if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.evicted
    }

    /// Bytes of all entries, each with its overhead.
    pub(super) fn size(&self) -> usize {
        self.entries
            .front()
            .map_or(0, |oldest| (self.inserted - oldest.offset) as usize)
    }

    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        let place = index.checked_sub(self.evicted)?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// Bytes that can be inserted before the entry at `index` is evicted; the capacity, if there is no such entry yet.
    pub(super) fn room_before(&self, index: u64) -> usize {
        if index < self.evicted {
            return 0;
        }
        match (self.get(index), self.entries.front()) {
            (Some(entry), Some(oldest)) => {
                self.capacity - self.size() + (entry.offset - oldest.offset) as usize
            }
            _ => self.capacity,
        }
    }

    /// Evicts entries until the rest fits.
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.size() > capacity {
            self.evict_oldest();
        }
    }

    /// Whether an entry must be evicted before one of `size` bytes is inserted.
    pub(super) fn must_evict(&self, size: usize) -> bool {
        !self.entries.is_empty() && self.size() + size > self.capacity
    }

    pub(super) fn evict_oldest(&mut self) -> Option<Entry> {
        let oldest = self.entries.pop_front()?;
        self.evicted += 1;
        Some(oldest)
    }

    /// Inserts an entry that is not larger than the capacity, after evicting as many as that takes.
    pub(super) fn insert(&mut self, name: Bytes, value: Bytes) {
        let size = field::size(name.len(), value.len());
        debug_assert!(size <= self.capacity, "callers compare with the capacity");
        while self.must_evict(size) {
            self.evict_oldest();
        }
        self.entries.push_back(Entry {
            name,
            value,
            offset: self.inserted,
        });
        self.inserted += size as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for three entries of 40 bytes.
    fn table() -> Table {
        let mut table = Table::default();
        table.set_capacity(120);
        table
    }

    fn insert(table: &mut Table, value: &'static str) {
        table.insert(
            Bytes::from_static(b"name"),
            Bytes::from_static(value.as_bytes()),
        );
    }

    #[test]
    fn the_oldest_entry_is_evicted_and_indices_stay() {
        let mut table = table();
        for value in ["aaaa", "bbbb", "cccc", "dddd"] {
            insert(&mut table, value);
        }
        assert_eq!(table.insert_count(), 4);
        assert_eq!(table.size(), 120);
        assert!(table.get(0).is_none());
        assert_eq!(table.get(1).unwrap().value, "bbbb");
        assert_eq!(table.get(3).unwrap().value, "dddd");
        assert!(table.get(4).is_none());
    }

    #[test]
    fn a_smaller_capacity_evicts() {
        let mut table = table();
        for value in ["aaaa", "bbbb", "cccc"] {
            insert(&mut table, value);
        }
        table.set_capacity(79);
        assert_eq!(table.size(), 40);
        assert_eq!(table.get(2).unwrap().value, "cccc");
        table.set_capacity(0);
        assert_eq!(table.size(), 0);
        assert_eq!(table.insert_count(), 3);
    }

    #[test]
    fn room_before_an_entry_is_what_is_free_and_what_is_older() {
        let mut table = table();
        insert(&mut table, "aaaa");
        insert(&mut table, "bbbb");
        assert_eq!(table.room_before(0), 40);
        assert_eq!(table.room_before(1), 80);
        assert_eq!(table.room_before(2), 120);
        insert(&mut table, "cccc");
        insert(&mut table, "dddd");
        assert_eq!(table.room_before(0), 0);
        assert_eq!(table.room_before(1), 0);
        assert_eq!(table.room_before(3), 80);
    }
}
