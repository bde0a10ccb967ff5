//! Out-of-order data that a receiver buffers because earlier bytes are missing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::observe::{Event, Observer};
use marline::{Instant, MakeObserver};

/// Observes the connections of an endpoint, of which one at a time receives.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<Held>>);

/// Bytes that a receiver buffered.
pub(super) struct OutOfOrder {
    pub(super) mean: f64,
    pub(super) max: f64,
}

/// Bytes over time.
#[derive(Debug, Default)]
struct Held {
    since: Instant,
    bytes: u64,
    most: u64,
    /// Byte seconds until `since`.
    area: f64,
}

impl Held {
    fn advance(&mut self, now: Instant) {
        let seconds = now.saturating_since(self.since).as_secs_f64();
        self.area += self.bytes as f64 * seconds;
        self.since = now;
    }
}

impl Memory {
    /// Makes the observers.
    pub(super) fn observers(&self) -> MakeObserver {
        let memory = self.clone();
        Arc::new(move |_| Some(Box::new(memory.clone()) as Box<dyn Observer>))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts counting at `now`.
    pub(super) fn begin(&self, now: Instant) {
        let mut held = self.held();
        *held = Held {
            since: now,
            bytes: held.bytes,
            most: held.bytes,
            area: 0.0,
        };
    }

    /// Bytes buffered since [`begin`](Self::begin), which was `seconds` before `now`.
    pub(super) fn end(&self, now: Instant, seconds: f64) -> OutOfOrder {
        let mut held = self.held();
        held.advance(now);
        OutOfOrder {
            mean: held.area / seconds.max(1e-9),
            max: held.most as f64,
        }
    }
}

impl Observer for Memory {
    fn on_event(&mut self, now: Instant, event: &Event<'_>) {
        if let Event::ReassemblyUpdated(update) = event {
            let mut held = self.held();
            held.advance(now);
            held.bytes = update.out_of_order_bytes;
            held.most = held.most.max(held.bytes);
        }
    }
}
