//! Content that was compressed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderValue;

use super::dictionaries::{Hash, Source};
use crate::limits::COMPRESSED_CACHE_BYTES;

/// A representation of a resource in a content coding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) source: Source,
    pub(super) coding: HeaderValue,
    /// The dictionary, for a coding with one.
    pub(super) dictionary: Option<Hash>,
}

/// The latest content, within [`COMPRESSED_CACHE_BYTES`].
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, Bytes>,
    /// The oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<Bytes> {
        self.entries().by_key.get(key).cloned()
    }

    /// Keeps `content`, and drops the oldest if there is too much.
    pub(super) fn insert(&self, key: Key, content: Bytes) {
        let mut entries = self.entries();
        if entries.by_key.contains_key(&key) {
            return;
        }
        entries.bytes += content.len();
        entries.order.push_back(key.clone());
        entries.by_key.insert(key, content);
        while entries.bytes > COMPRESSED_CACHE_BYTES {
            let Some(oldest) = entries.order.pop_front() else {
                break;
            };
            let removed = entries.by_key.remove(&oldest);
            entries.bytes -= removed.map_or(0, |content| content.len());
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: usize, tag: &'static str) -> Source {
        Source {
            target: format!("/{number}").parse().unwrap(),
            tag: HeaderValue::from_static(tag),
        }
    }

    fn key(number: usize) -> Key {
        Key {
            source: source(number, "\"tag\""),
            coding: HeaderValue::from_static("zstd"),
            dictionary: None,
        }
    }

    #[test]
    fn the_oldest_content_makes_room() {
        let cache = Cache::default();
        let quarter = Bytes::from(vec![0; COMPRESSED_CACHE_BYTES / 4]);
        for number in 0..5 {
            cache.insert(key(number), quarter.clone());
        }
        assert!(cache.get(&key(0)).is_none());
        assert!((1..5).all(|number| cache.get(&key(number)).is_some()));
        assert!(cache.entries().bytes <= COMPRESSED_CACHE_BYTES);
    }

    #[test]
    fn content_that_changed_has_another_key() {
        let cache = Cache::default();
        cache.insert(key(0), Bytes::from_static(b"before"));
        let changed = Key {
            source: source(0, "\"other\""),
            ..key(0)
        };
        assert!(cache.get(&changed).is_none());
    }
}
