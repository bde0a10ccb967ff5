//! Updates records with the samples of connections, and looks them up.

use std::sync::Arc;

use super::{
    Capacity, HistoryConfig, PathKey, PathRecord, PathSample, PathScope, PathStore, SampleEvent,
    ZeroRtt,
};
use crate::congestion::{ConnectionKind, MAXIMUM_WINDOW};

/// The common part of the policies: one configuration and its store.
#[derive(Clone, Debug)]
pub(super) struct Learner {
    pub(super) config: HistoryConfig,
    store: Arc<dyn PathStore>,
}

impl Learner {
    pub(super) fn new(config: HistoryConfig, store: Arc<dyn PathStore>) -> Self {
        Self { config, store }
    }

    pub(super) fn store(&self) -> &dyn PathStore {
        &*self.store
    }

    /// The average window of earlier connections like this one, in bytes.
    pub(super) fn average(&self, kind: &ConnectionKind<'_>) -> Option<f64> {
        let record = self.recall(kind, self.config.scope)?;
        record.windows.average(self.config.average)
    }

    /// The window of the connection that was open when the peer last resumed its session, in bytes.
    pub(super) fn live(&self, kind: &ConnectionKind<'_>) -> Option<u64> {
        self.recall(kind, PathScope::Address)?.live
    }

    pub(super) fn observe(&self, kind: &ConnectionKind<'_>, seen: &PathSample) {
        if self.config.zero_rtt == ZeroRtt::Carry {
            self.carry(kind, seen);
        }
        // A sample that changes nothing must not prolong the lifetime of the record.
        let known = self.recall(kind, self.config.scope);
        let mut record = known.unwrap_or_else(|| PathRecord::new(kind.now));
        if self.learn(kind, &mut record, seen) {
            let key = self.key(kind, self.config.scope);
            self.store.update(kind.now, &key, &mut |record| {
                self.learn(kind, record, seen);
            });
        }
    }

    /// The saved capacity, unless it has expired.
    pub(super) fn capacity(&self, kind: &ConnectionKind<'_>) -> Option<Capacity> {
        let record = self.recall(kind, self.config.scope)?;
        record.capacity.filter(|known| self.holds(kind, known))
    }

    /// Removes the saved capacity and returns it to the first caller.
    pub(super) fn take_capacity(&self, kind: &ConnectionKind<'_>) -> Option<Capacity> {
        self.capacity(kind)?;
        let key = self.key(kind, self.config.scope);
        let mut taken = None;
        self.store.update(kind.now, &key, &mut |record| {
            taken = record.capacity.take();
        });
        taken.filter(|known| self.holds(kind, known))
    }

    fn key(&self, kind: &ConnectionKind<'_>, scope: PathScope) -> PathKey {
        let server_name = kind.server_name.filter(|_| self.config.per_server_name);
        scope.key(kind.peer, server_name)
    }

    fn recall(&self, kind: &ConnectionKind<'_>, scope: PathScope) -> Option<PathRecord> {
        let record = self.store.recall(kind.now, &self.key(kind, scope))?;
        (!record.is_expired(kind.now, self.config.lifetime)).then_some(record)
    }

    /// Records the window of a connection whose peer resumes its session, and removes it when that
    /// connection ends.
    fn carry(&self, kind: &ConnectionKind<'_>, seen: &PathSample) {
        let live = match seen.event {
            SampleEvent::Resumed => Some(seen.window.min(MAXIMUM_WINDOW)),
            SampleEvent::Closed => None,
        };
        let known = self.recall(kind, PathScope::Address);
        if live.is_some() || known.is_some_and(|record| record.live.is_some()) {
            let key = self.key(kind, PathScope::Address);
            self.store
                .update(kind.now, &key, &mut |record| record.live = live);
        }
    }

    /// Updates `record` with a sample; returns whether it changed anything.
    fn learn(&self, kind: &ConnectionKind<'_>, record: &mut PathRecord, seen: &PathSample) -> bool {
        if record.is_expired(kind.now, self.config.lifetime) {
            *record = PathRecord::new(kind.now);
        }
        let known = record.capacity.filter(|known| self.holds(kind, known));
        let capacity = match seen.event {
            SampleEvent::Closed => seen.capacity(kind.now, known.map(|known| known.window)),
            // The connection is still using the path.
            SampleEvent::Resumed => None,
        };
        record.capacity = capacity.or(known);

        let average = record.windows.average(self.config.average);
        let raises = average.is_none_or(|average| seen.window as f64 > average);
        let is_low_for_want_of_data = seen.app_limited && self.config.raise_only_when_limited;
        let counts = seen.delivered >= seen.initial_window && (raises || !is_low_for_want_of_data);
        if counts {
            record.windows.add(self.config.average, seen.window);
            record.samples = record.samples.saturating_add(1);
        }
        counts || capacity.is_some()
    }

    fn holds(&self, kind: &ConnectionKind<'_>, known: &Capacity) -> bool {
        kind.now - known.at < self.config.lifetime
    }
}
