//! First windows from what earlier connections saw, and what of that is believed.

use std::sync::Arc;

use super::{
    Capacity, HistoryConfig, PathKey, PathRecord, PathSample, PathStore, SampleEvent, Scope,
    ZeroRtt,
};
use crate::congestion::{ConnectionKind, InitialWindow, MAXIMUM_WINDOW};

/// Begins with the average window of earlier connections where that is larger than the fallback's.
///
/// A window that a path could bear once is a guess at what it bears now. A path that got worse meanwhile
/// gets a burst that it cannot carry; `cap` bounds it, and careful resume does without.
#[derive(Clone, Debug)]
pub struct HistoryWindow {
    config: HistoryConfig,
    store: Arc<dyn PathStore>,
    fallback: Arc<dyn InitialWindow>,
}

impl HistoryWindow {
    /// Learns into `store`; `fallback` is the default window.
    pub fn new(
        config: HistoryConfig,
        store: Arc<dyn PathStore>,
        fallback: Arc<dyn InitialWindow>,
    ) -> Self {
        Self {
            config,
            store,
            fallback,
        }
    }

    /// How it learns.
    pub fn config(&self) -> &HistoryConfig {
        &self.config
    }

    /// The average window of earlier connections like this one, in bytes.
    pub fn average(&self, kind: &ConnectionKind<'_>) -> Option<f64> {
        let record = self.recall(kind, self.config.scope)?;
        record.windows.average(self.config.average)
    }

    /// The first window, in bytes and parts of a byte: [`InitialWindow::window`] is its whole bytes.
    pub fn first_window(&self, kind: &ConnectionKind<'_>) -> f64 {
        let default = self.fallback.window(kind) as f64;
        let cap = self.config.cap.map_or(f64::INFINITY, |cap| cap as f64);
        let learnt = || {
            self.average(kind)
                .map_or(default, |average| average.min(cap).max(default))
        };
        match self.config.zero_rtt {
            ZeroRtt::Default if kind.resumed => default,
            ZeroRtt::Carry if kind.resumed => self
                .recall(kind, Scope::Address)
                .and_then(|record| record.live)
                .map_or_else(learnt, |live| live as f64),
            _ => learnt(),
        }
    }

    fn key(&self, kind: &ConnectionKind<'_>, scope: Scope) -> PathKey {
        let server_name = kind.server_name.filter(|_| self.config.per_server_name);
        scope.key(kind.peer, server_name)
    }

    fn recall(&self, kind: &ConnectionKind<'_>, scope: Scope) -> Option<PathRecord> {
        let record = self.store.recall(kind.now, &self.key(kind, scope))?;
        (!record.is_expired(kind.now, self.config.lifetime)).then_some(record)
    }

    /// Remembers the window of the peer's connection while that is alive, whatever else is learnt.
    fn carry(&self, kind: &ConnectionKind<'_>, seen: &PathSample) {
        let live = match seen.event {
            SampleEvent::Resumed => Some(seen.window.min(MAXIMUM_WINDOW)),
            SampleEvent::Closed => None,
        };
        let known = self.recall(kind, Scope::Address);
        if live.is_some() || known.is_some_and(|record| record.live.is_some()) {
            let key = self.key(kind, Scope::Address);
            self.store
                .update(kind.now, &key, &mut |record| record.live = live);
        }
    }

    /// Puts what `seen` says into `record`; whether it said anything.
    fn learn(&self, kind: &ConnectionKind<'_>, record: &mut PathRecord, seen: &PathSample) -> bool {
        if record.is_expired(kind.now, self.config.lifetime) {
            *record = PathRecord::new(kind.now);
        }
        let known = record.capacity.filter(|known| self.holds(kind, known));
        let capacity = capacity(kind, known, seen);
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

impl InitialWindow for HistoryWindow {
    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        (self.first_window(kind) as u64).min(MAXIMUM_WINDOW)
    }

    fn observe(&self, kind: &ConnectionKind<'_>, seen: &PathSample) {
        if self.config.zero_rtt == ZeroRtt::Carry {
            self.carry(kind, seen);
        }
        // Who says nothing must not keep an old record alive.
        let known = self.recall(kind, self.config.scope);
        let mut record = known.unwrap_or_else(|| PathRecord::new(kind.now));
        if self.learn(kind, &mut record, seen) {
            let key = self.key(kind, self.config.scope);
            self.store.update(kind.now, &key, &mut |record| {
                self.learn(kind, record, seen);
            });
        }
    }

    fn resumption(&self, kind: &ConnectionKind<'_>) -> Option<Capacity> {
        let record = self.recall(kind, self.config.scope)?;
        record.capacity.filter(|known| self.holds(kind, known))
    }
}

/// The capacity that `seen` proves; `None` if what is `known` stands.
///
/// Only what was acknowledged is known to fit. A connection that was short of data may have left room
/// unused, so that it can only raise what is known; one that lost of its first flight lowers it, however
/// little it delivered.
fn capacity(
    kind: &ConnectionKind<'_>,
    known: Option<Capacity>,
    seen: &PathSample,
) -> Option<Capacity> {
    let window = seen.window.min(MAXIMUM_WINDOW);
    let proven = window.min(seen.delivered);
    let window = match known {
        Some(known) if seen.lost_at_first && window < known.window => window,
        _ if seen.delivered < seen.initial_window => return None,
        Some(known) if seen.app_limited && proven < known.window => return None,
        _ => proven,
    };
    (!seen.rtt.is_zero()).then_some(Capacity {
        window,
        rtt: seen.rtt,
        at: kind.now,
    })
}

#[cfg(test)]
mod tests;
