//! Distributes the bytes of objects over connections (mQUIC; Qian et al., IEEE Access 2018, section V-C).

use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;

/// The objects that are split into ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SplitPolicy {
    /// The critical objects of a page, in which others are discovered. The others are fetched whole, on each
    /// connection in turn.
    Page,
    /// All objects: downloads, videos.
    File,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRequest {
    /// The index of the connection, from 0.
    pub connection: usize,
    /// The bytes of the object; `None` for the whole object.
    pub range: Option<Range<u64>>,
}

/// Assigns objects to connections, in turn.
#[derive(Clone, Debug)]
pub struct Planner {
    policy: SplitPolicy,
    connections: NonZeroUsize,
    min_range: NonZeroU64,
    /// The connection of the next whole object.
    next: usize,
}

impl Planner {
    /// Plans for `connections`; no object is split into ranges smaller than `min_range` bytes.
    pub fn new(policy: SplitPolicy, connections: NonZeroUsize, min_range: NonZeroU64) -> Self {
        Self {
            policy,
            connections,
            min_range,
            next: 0,
        }
    }

    /// The requests for an object of `size` bytes, to be sent at once. An empty object that would be split
    /// needs none.
    pub fn plan(&mut self, size: u64, critical: bool) -> Vec<PlannedRequest> {
        if critical || self.policy == SplitPolicy::File {
            return self.split(0..size).collect();
        }
        let connection = self.next;
        self.next = (connection + 1) % self.connections;
        let range = None;
        vec![PlannedRequest { connection, range }]
    }

    /// Contiguous ranges of `bytes`, one for each connection, or fewer so that none is too small. Their sizes
    /// differ by at most one byte; larger ones come first.
    pub fn split(&self, bytes: Range<u64>) -> impl Iterator<Item = PlannedRequest> + use<> {
        let size = bytes.end.saturating_sub(bytes.start);
        let most = self.connections.get() as u64;
        let count = (size / self.min_range).clamp(1, most);
        let (each, longer) = (size / count, size % count);
        let place = move |index: u64| bytes.start + index * each + index.min(longer);
        (0..count)
            .map(move |index| place(index)..place(index + 1))
            .filter(|range| !range.is_empty())
            .enumerate()
            .map(|(connection, range)| PlannedRequest {
                connection,
                range: Some(range),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_bytes_once() {
        for (first, end, connections) in [(0, 10, 3), (5, 6, 4), (1, 1000, 7), (9, 9, 2), (0, 2, 5)]
        {
            let connections = NonZeroUsize::new(connections).unwrap();
            let planner = Planner::new(SplitPolicy::File, connections, NonZeroU64::MIN);
            let mut next = first;
            for (index, request) in planner.split(first..end).enumerate() {
                let range = request.range.unwrap();
                assert!(index < connections.get());
                assert_eq!((request.connection, range.start), (index, next));
                assert!(range.end > range.start);
                next = range.end;
            }
            assert_eq!(next, end);
        }
    }
}
