//! Extensible priorities (RFC 9218, section 10).

use std::collections::VecDeque;
use std::sync::Arc;

use marline_wire::StreamId;
use rustc_hash::FxHashMap;

use super::ring::Ring;
use super::{Priority, StreamScheduler};
use crate::settings::{Entry, Make};

/// The scheduler's name in settings.
pub(super) const ENTRY: Entry<Make<dyn StreamScheduler>, ()> =
    Entry::plain("rfc9218", "The most urgent first (RFC 9218)", |()| {
        Arc::new(|| Box::new(Rfc9218::default()))
    });

const LEVELS: usize = Priority::MAX_URGENCY as usize + 1;

/// Serves the most urgent streams first.
///
/// Among streams of one urgency, those that are not incremental go one after the other by ID, and
/// incremental ones take turns. If a level has both kinds, they alternate to prevent starvation.
#[derive(Debug, Default)]
pub struct Rfc9218 {
    levels: [Level; LEVELS],
    /// Bit `n` is set while level `n` has streams.
    occupied: u8,
    active: FxHashMap<StreamId, Active>,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    priority: Priority,
    /// Index in the ring, if the stream is incremental.
    seat: usize,
}

/// Streams of one urgency.
#[derive(Debug, Default)]
struct Level {
    /// Streams by ID. New streams are mostly added at the back and finished ones removed at the front, so few
    /// are moved.
    sequential: VecDeque<StreamId>,
    incremental: Ring,
    /// Whether the incremental streams are next.
    alternate: bool,
}

impl Level {
    fn is_empty(&self) -> bool {
        self.sequential.is_empty() && self.incremental.is_empty()
    }

    fn insert(&mut self, id: StreamId, incremental: bool) -> usize {
        if incremental {
            return self.incremental.push(id);
        }
        if self.sequential.back().is_none_or(|&last| last < id) {
            self.sequential.push_back(id);
        } else if let Err(place) = self.sequential.binary_search(&id) {
            self.sequential.insert(place, id);
        }
        0
    }

    fn remove(&mut self, id: StreamId, active: Active) {
        if active.priority.incremental {
            self.incremental.remove(active.seat);
        } else if self.sequential.front() == Some(&id) {
            self.sequential.pop_front();
        } else if let Ok(place) = self.sequential.binary_search(&id) {
            self.sequential.remove(place);
        }
    }

    fn pick(&self) -> Option<StreamId> {
        let sequential = self.sequential.front().copied();
        let incremental = self.incremental.head();
        if self.alternate {
            incremental.or(sequential)
        } else {
            sequential.or(incremental)
        }
    }

    /// All streams, in the order in which they would be picked if those before were not active.
    fn iter(&self) -> impl Iterator<Item = StreamId> {
        let sequential = || self.sequential.iter().copied();
        let (first, last) = if self.alternate {
            (None, Some(sequential()))
        } else {
            (Some(sequential()), None)
        };
        let first = first.into_iter().flatten();
        first
            .chain(self.incremental.iter())
            .chain(last.into_iter().flatten())
    }

    fn on_sent(&mut self, id: StreamId, incremental: bool) {
        self.alternate = !incremental;
        if self.incremental.head() == Some(id) {
            self.incremental.rotate();
        }
    }
}

impl StreamScheduler for Rfc9218 {
    fn activate(&mut self, id: StreamId, priority: Priority) {
        if self.active.contains_key(&id) {
            self.set_priority(id, priority);
            return;
        }
        let urgency = priority.urgency.min(Priority::MAX_URGENCY);
        let priority = Priority::new(urgency, priority.incremental);
        let seat = self.levels[usize::from(urgency)].insert(id, priority.incremental);
        self.occupied |= 1 << urgency;
        self.active.insert(id, Active { priority, seat });
    }

    fn deactivate(&mut self, id: StreamId) {
        let Some(active) = self.active.remove(&id) else {
            return;
        };
        let urgency = active.priority.urgency;
        let level = &mut self.levels[usize::from(urgency)];
        level.remove(id, active);
        if level.is_empty() {
            self.occupied &= !(1 << urgency);
        }
    }

    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        let changes = self
            .active
            .get(&id)
            .is_some_and(|active| active.priority != priority);
        if changes {
            self.deactivate(id);
            self.activate(id, priority);
        }
    }

    fn pick(&mut self) -> Option<StreamId> {
        let most_urgent = self.occupied.trailing_zeros() as usize;
        self.levels.get(most_urgent)?.pick()
    }

    fn order(&mut self, most: usize, out: &mut Vec<StreamId>) {
        out.extend(self.levels.iter().flat_map(Level::iter).take(most));
    }

    fn on_sent(&mut self, id: StreamId, _bytes: u64) {
        if let Some(Active { priority, .. }) = self.active.get(&id) {
            self.levels[usize::from(priority.urgency)].on_sent(id, priority.incremental);
        }
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}

#[cfg(test)]
mod tests;
