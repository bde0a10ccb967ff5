//! Priorities that PRIORITY_UPDATE frames give to requests (RFC 9218, section 7).

use std::collections::BTreeMap;

use marline_wire::StreamId;

use super::{Connection, Event};
use crate::limits;
use crate::priority::Priority;

/// Priorities of requests that have not arrived.
#[derive(Debug, Default)]
pub(super) struct EarlyPriorities(BTreeMap<StreamId, Priority>);

impl EarlyPriorities {
    /// Stores one, unless there are too many: priorities are hints.
    fn store(&mut self, id: StreamId, priority: Priority) {
        if self.0.len() < limits::MAX_EARLY_PRIORITIES || self.0.contains_key(&id) {
            self.0.insert(id, priority);
        }
    }

    /// The priority of a request that arrives.
    pub(super) fn take(&mut self, id: StreamId) -> Option<Priority> {
        self.0.remove(&id)
    }
}

impl Connection {
    /// The client gives a priority to a request that has arrived, or will; others have ended.
    pub(super) fn on_priority_update(&mut self, stream: StreamId, priority: Priority) {
        match self.requests.get_mut(&stream) {
            Some(incoming) => {
                incoming.priority = Some(priority);
                if incoming.is_announced() {
                    self.events.push_back(Event::Priority { stream, priority });
                }
            }
            None if stream >= self.next_request => self.priorities.store(stream, priority),
            None => {}
        }
    }
}
