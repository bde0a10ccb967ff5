//! Finds the entries of the encoder's table by name and value.

use bytes::Bytes;
use std::collections::BTreeMap;

/// Absolute indices by name, then value. Ordered maps: their cost does not depend on which names a peer makes us send.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: BTreeMap<Bytes, Name>,
}

/// The entries with one name.
#[derive(Debug)]
struct Name {
    newest: u64,
    /// The newest entry of each value.
    values: BTreeMap<Bytes, u64>,
}

/// The newest entries for a field line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// With its name and value.
    pub(super) line: Option<u64>,
    /// With its name.
    pub(super) name: Option<u64>,
}

impl Index {
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Found {
        self.names
            .get(name)
            .map_or_else(Found::default, |entries| Found {
                line: entries.values.get(value).copied(),
                name: Some(entries.newest),
            })
    }

    /// Adds an entry, newer than all others.
    pub(super) fn insert(&mut self, name: Bytes, value: Bytes, index: u64) {
        let entries = self.names.entry(name).or_insert_with(|| Name {
            newest: index,
            values: BTreeMap::new(),
        });
        entries.newest = index;
        entries.values.insert(value, index);
    }

    /// Removes the entry at `index`, the oldest. Newer ones of the same name or value stay.
    pub(super) fn remove(&mut self, name: &[u8], value: &[u8], index: u64) {
        let Some(entries) = self.names.get_mut(name) else {
            return;
        };
        if entries.newest == index {
            self.names.remove(name);
        } else if entries.values.get(value) == Some(&index) {
            entries.values.remove(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn the_newest_entry_is_found_and_stays_when_an_older_one_is_removed() {
        let mut index = Index::default();
        index.insert(bytes("name"), bytes("a"), 0);
        index.insert(bytes("name"), bytes("b"), 1);
        index.insert(bytes("name"), bytes("a"), 2);
        let found = |index: &Index, value: &str| index.find(b"name", value.as_bytes());
        assert_eq!(found(&index, "a").line, Some(2));
        assert_eq!(found(&index, "b").line, Some(1));
        assert_eq!(found(&index, "c").name, Some(2));
        index.remove(b"name", b"a", 0);
        assert_eq!(found(&index, "a").line, Some(2));
        index.remove(b"name", b"b", 1);
        assert_eq!(found(&index, "b").line, None);
        index.remove(b"name", b"a", 2);
        assert_eq!(found(&index, "a"), Found::default());
    }
}
