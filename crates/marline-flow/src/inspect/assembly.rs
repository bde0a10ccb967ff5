//! The beginning of a stream from pieces that come in any order.

use std::ops::Range;

use crate::limits::MAX_GAPS;

/// The known part of the first bytes of a stream.
#[derive(Debug)]
pub(super) struct Assembly {
    bytes: Vec<u8>,
    /// The number of bytes from the first without a gap.
    whole: usize,
    /// The ranges known beyond, in order and disjoint.
    beyond: Vec<Range<usize>>,
    limit: usize,
}

impl Assembly {
    /// A stream of which at most `limit` bytes are kept.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            whole: 0,
            beyond: Vec::new(),
            limit,
        }
    }

    /// Adds data at an offset. Known bytes stay; data beyond the limit, or behind too many gaps, is dropped. Returns whether
    /// [`whole`](Self::whole) grew.
    pub(super) fn insert(&mut self, offset: usize, data: &[u8]) -> bool {
        let end = offset.saturating_add(data.len()).min(self.limit);
        let start = offset.max(self.whole);
        if start >= end {
            return false;
        }
        let first = self.beyond.partition_point(|known| known.end < start);
        let last = self.beyond.partition_point(|known| known.start <= end);
        if start > self.whole && first == last && self.beyond.len() >= MAX_GAPS {
            return false;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        // The first copy stays, as in most receivers; both are equal unless the sender is malicious.
        let mut at = start;
        for known in &self.beyond[first..last] {
            self.bytes[at..known.start.max(at)]
                .copy_from_slice(&data[at - offset..known.start.max(at) - offset]);
            at = at.max(known.end);
        }
        if at < end {
            self.bytes[at..end].copy_from_slice(&data[at - offset..end - offset]);
        }
        let joined = self.beyond[first..last]
            .iter()
            .fold(start..end, |all, known| {
                all.start.min(known.start)..all.end.max(known.end)
            });
        if joined.start <= self.whole {
            self.whole = joined.end;
            self.beyond.drain(..last);
            return true;
        }
        self.beyond.splice(first..last, [joined]);
        false
    }

    /// The bytes from the first to the first gap.
    pub(super) fn whole(&self) -> &[u8] {
        &self.bytes[..self.whole]
    }

    /// Whether nothing can be added.
    pub(super) fn is_full(&self) -> bool {
        self.whole >= self.limit
    }

    /// The number of bytes of memory in use.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Clears all, and frees the memory.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Assembly;

    #[test]
    fn pieces_in_any_order_become_a_whole() {
        let mut assembly = Assembly::new(100);
        assert!(!assembly.insert(4, b"efgh"));
        assert!(!assembly.insert(10, b"kl"));
        assert!(assembly.insert(0, b"abcde"));
        assert_eq!(assembly.whole(), b"abcdefgh");
        assert!(assembly.insert(6, b"ghij"));
        assert_eq!(assembly.whole(), b"abcdefghijkl");
    }

    #[test]
    fn bytes_beyond_the_limit_are_dropped() {
        let mut assembly = Assembly::new(4);
        assert!(!assembly.insert(usize::MAX, b"x"));
        assert!(!assembly.insert(4, b"x"));
        assert!(assembly.insert(0, b"abcdefgh"));
        assert_eq!(assembly.whole(), b"abcd");
        assert!(assembly.is_full());
    }

    proptest! {
        #[test]
        fn the_whole_is_a_prefix_of_the_stream(
            pieces in prop::collection::vec((0usize..300, 0usize..40), 0..200),
        ) {
            let stream: Vec<u8> = (0..400).map(|i| (i % 251) as u8).collect();
            let mut assembly = Assembly::new(256);
            let mut there = [false; 256];
            for (offset, len) in pieces {
                let before = assembly.whole().len();
                let grew = assembly.insert(offset, &stream[offset..offset + len]);
                there.iter_mut().skip(offset).take(len).for_each(|known| *known = true);
                prop_assert_eq!(grew, assembly.whole().len() > before);
            }
            let whole = assembly.whole().len();
            prop_assert_eq!(assembly.whole(), &stream[..whole]);
            // Pieces may have been dropped for too many gaps, never invented.
            prop_assert!(there[..whole].iter().all(|known| *known));
            prop_assert!(assembly.held() <= 512);
        }
    }
}
