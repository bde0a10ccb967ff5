//! Sets of integers, stored as ranges.

use std::collections::{VecDeque, vec_deque};
use std::ops::Range;

#[cfg(test)]
mod tests;

/// A set of `u64` kept as sorted, disjoint, non-adjacent half-open ranges.
///
/// Growing at either end is O(1), elsewhere O(log n) to find and O(n) to shift. It has no limit:
/// callers that insert values chosen by a peer must cap [`RangeSet::len`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// An empty set without allocations.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            ranges: VecDeque::new(),
        }
    }

    /// Number of ranges, not of integers.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The smallest member.
    pub(crate) fn min(&self) -> Option<u64> {
        self.ranges.front().map(|range| range.start)
    }

    /// The largest member.
    #[cfg(test)]
    pub(crate) fn max(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.end - 1)
    }

    /// Whether `value` is a member.
    pub(crate) fn contains(&self, value: u64) -> bool {
        match self.ranges.back() {
            Some(last) if value < last.start => {}
            last => return last.is_some_and(|last| value < last.end),
        }
        let next = self.first_ending_after(value);
        self.ranges
            .get(next)
            .is_some_and(|range| range.start <= value)
    }

    /// Adds `range`; returns the number of new integers.
    pub(crate) fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        match self.ranges.back_mut() {
            None => {
                let new = range.end - range.start;
                self.ranges.push_back(range);
                return new;
            }
            Some(last) if last.end < range.start => {
                let new = range.end - range.start;
                self.ranges.push_back(range);
                return new;
            }
            Some(last) if last.start <= range.start => {
                let new = range.end.saturating_sub(last.end);
                last.end += new;
                return new;
            }
            Some(_) => {}
        }
        self.insert_inside(range)
    }

    /// The general case of [`RangeSet::insert`]: merges every range that touches `range`.
    fn insert_inside(&mut self, range: Range<u64>) -> u64 {
        let first = self.ranges.partition_point(|r| r.end < range.start);
        let after = first
            + self
                .ranges
                .range(first..)
                .take_while(|r| r.start <= range.end)
                .count();
        if first == after {
            let new = range.end - range.start;
            self.ranges.insert(first, range);
            return new;
        }
        let covered: u64 = self.ranges.range(first..after).map(length).sum();
        let merged = Range {
            start: self.ranges[first].start.min(range.start),
            end: self.ranges[after - 1].end.max(range.end),
        };
        let new = length(&merged) - covered;
        self.ranges[first] = merged;
        if after - first > 1 {
            self.ranges.drain(first + 1..after);
        }
        new
    }

    /// Removes `range`; returns the number of removed integers.
    pub(crate) fn remove(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let mut at = self.first_ending_after(range.start);
        let Some(first) = self.ranges.get_mut(at) else {
            return 0;
        };
        if first.start < range.start {
            let end = first.end;
            first.end = range.start;
            at += 1;
            if end > range.end {
                self.ranges.insert(at, range.end..end);
                return length(&range);
            }
            return end - range.start + self.remove_whole(at, range.end);
        }
        self.remove_whole(at, range.end)
    }

    /// Removes all members below `end` in the ranges from index `first` on.
    fn remove_whole(&mut self, first: usize, end: u64) -> u64 {
        let mut removed = 0;
        let mut after = first;
        while let Some(range) = self.ranges.get_mut(after).filter(|r| r.start < end) {
            if range.end > end {
                removed += end - range.start;
                range.start = end;
                break;
            }
            removed += length(range);
            after += 1;
        }
        if after == first + 1 && first == 0 {
            self.ranges.pop_front();
        } else if after > first {
            self.ranges.drain(first..after);
        }
        removed
    }

    /// Removes and returns the lowest range.
    pub(crate) fn pop_min(&mut self) -> Option<Range<u64>> {
        self.ranges.pop_front()
    }

    /// Removes all members and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The ranges, lowest first; `.rev()` for highest first.
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter(self.ranges.iter())
    }

    /// The parts of `range` that are not members, lowest first.
    pub(crate) fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.first_ending_after(range.start);
        let mut at = range.start;
        let mut covered = self.ranges.range(first..);
        std::iter::from_fn(move || {
            while at < range.end {
                let next = covered.next().cloned().unwrap_or(range.end..range.end);
                let gap = at..next.start.min(range.end);
                at = next.end;
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Index of the first range that ends beyond `value`.
    fn first_ending_after(&self, value: u64) -> usize {
        self.ranges.partition_point(|range| range.end <= value)
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// The ranges of a [`RangeSet`], in either order.
#[derive(Clone, Debug)]
pub(crate) struct Iter<'a>(vec_deque::Iter<'a, Range<u64>>);

impl Iterator for Iter<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().cloned()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().cloned()
    }
}

impl ExactSizeIterator for Iter<'_> {}
