//! First come, first served.

use std::sync::Arc;

use marline_wire::StreamId;
use rustc_hash::FxHashMap;

use super::ring::Ring;
use super::{Priority, StreamScheduler};
use crate::settings::{Entry, Make};

/// The scheduler's name in settings.
pub(super) const ENTRY: Entry<Make<dyn StreamScheduler>, ()> = Entry::plain(
    "fifo",
    "One after another, in the order in which they became active",
    |()| Arc::new(|| Box::new(Fifo::default())),
);

/// Serves the stream that has been active longest until it has no more data to send; ignores priorities.
#[derive(Debug, Default)]
pub struct Fifo {
    ring: Ring,
    seats: FxHashMap<StreamId, usize>,
}

impl StreamScheduler for Fifo {
    fn activate(&mut self, id: StreamId, _priority: Priority) {
        let ring = &mut self.ring;
        self.seats.entry(id).or_insert_with(|| ring.push(id));
    }

    fn deactivate(&mut self, id: StreamId) {
        if let Some(seat) = self.seats.remove(&id) {
            self.ring.remove(seat);
        }
    }

    fn set_priority(&mut self, _id: StreamId, _priority: Priority) {}

    fn pick(&mut self) -> Option<StreamId> {
        self.ring.head()
    }

    fn order(&mut self, most: usize, out: &mut Vec<StreamId>) {
        out.extend(self.ring.iter().take(most));
    }

    fn on_sent(&mut self, _id: StreamId, _bytes: u64) {}

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
