//! A replay filter for tokens, in bounded memory.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::limits::REPLAY_GENERATION;

/// Records used tokens so that each is accepted once (RFC 9000, section 8.1.4).
///
/// It keeps two generations of at most [`REPLAY_GENERATION`] tokens each. When the older generation is
/// dropped, tokens issued before the latest of it are no longer accepted. Memory is therefore bounded
/// and no token is accepted twice; a client whose unused token is refused loses a round trip.
#[derive(Debug, Default)]
pub(crate) struct ReplayFilter {
    /// Token ID to issue time, in seconds since the Unix epoch.
    recent: FxHashMap<u64, u64>,
    older: FxHashMap<u64, u64>,
    /// Earliest issue time that is still accepted, in seconds since the Unix epoch.
    accepted_from: u64,
}

impl ReplayFilter {
    /// Marks the token `id`, issued at `issued`, as used. False if it was used before, or is too old for the filter.
    pub(crate) fn first_use(&mut self, id: u64, issued: u64) -> bool {
        if issued < self.accepted_from || self.older.contains_key(&id) {
            return false;
        }
        let Entry::Vacant(entry) = self.recent.entry(id) else {
            return false;
        };
        entry.insert(issued);
        if self.recent.len() >= REPLAY_GENERATION {
            let dropped = std::mem::replace(&mut self.older, std::mem::take(&mut self.recent));
            let latest = dropped.values().copied().max();
            self.accepted_from = latest.map_or(self.accepted_from, |latest| {
                self.accepted_from.max(latest.saturating_add(1))
            });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::REPLAY_GENERATION;
    use crate::crypto::ReplayFilter;

    #[test]
    fn a_token_is_accepted_once() {
        let mut filter = ReplayFilter::default();
        assert!(filter.first_use(1, 100));
        assert!(!filter.first_use(1, 100));
        assert!(filter.first_use(2, 100));
    }

    #[test]
    fn memory_is_bounded_and_no_token_is_accepted_twice() {
        let mut filter = ReplayFilter::default();
        let count = 5 * REPLAY_GENERATION as u64;
        for id in 0..count {
            assert!(filter.first_use(id, id));
            assert!(filter.recent.len() + filter.older.len() <= 2 * REPLAY_GENERATION);
        }
        for id in 0..count {
            assert!(!filter.first_use(id, id), "token {id} was accepted twice");
        }
        assert!(filter.first_use(count, count));
    }
}
