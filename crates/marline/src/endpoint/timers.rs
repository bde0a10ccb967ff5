//! The deadlines of an endpoint's connections.

use std::collections::BTreeSet;

use marline_proto::{ConnectionHandle, Instant};

/// Closed connections are forgotten at multiples of this, in nanoseconds: many at once, for one timer.
const FORGET_EVERY: u64 = 16_000_000;

/// One deadline for each connection, in order.
///
/// A deadline that is postponed keeps its earlier entry and expires too early, once: on a busy connection
/// nearly every packet postpones it, and few deadlines are reached.
#[derive(Default)]
pub(super) struct Timers {
    order: BTreeSet<(Instant, usize)>,
    /// By handle: the deadline in `order`.
    entries: Vec<Option<Instant>>,
}

impl Timers {
    /// Sets the deadline of a connection; it may expire earlier, once.
    pub(super) fn update(&mut self, handle: ConnectionHandle, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            return self.remove(handle);
        };
        if self.entries.len() <= handle.0 {
            self.entries.resize(handle.0 + 1, None);
        }
        let entry = &mut self.entries[handle.0];
        match *entry {
            Some(earlier) if earlier <= deadline => return,
            Some(later) => {
                self.order.remove(&(later, handle.0));
            }
            None => {}
        }
        *entry = Some(deadline);
        self.order.insert((deadline, handle.0));
    }

    /// Sets when a closed connection is forgotten: at `end`, which is its only deadline, or shortly after.
    pub(super) fn update_closed(&mut self, handle: ConnectionHandle, end: Instant) {
        self.remove(handle);
        let nanos = end.as_nanos();
        let rounded = nanos.checked_next_multiple_of(FORGET_EVERY);
        self.update(handle, Some(Instant::from_nanos(rounded.unwrap_or(nanos))));
    }

    /// Removes the connection's deadline.
    pub(super) fn remove(&mut self, handle: ConnectionHandle) {
        if let Some(deadline) = self.entries.get_mut(handle.0).and_then(Option::take) {
            self.order.remove(&(deadline, handle.0));
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(deadline, _)| deadline)
    }

    /// A connection whose deadline has passed at `now`; its deadline is removed.
    pub(super) fn pop(&mut self, now: Instant) -> Option<ConnectionHandle> {
        let &(deadline, handle) = self.order.first()?;
        if deadline > now {
            return None;
        }
        self.order.pop_first();
        self.entries[handle] = None;
        Some(ConnectionHandle(handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn deadlines_expire_in_order_and_postponed_ones_early() {
        let mut timers = Timers::default();
        timers.update(ConnectionHandle(3), Some(at(30)));
        timers.update(ConnectionHandle(1), Some(at(10)));
        timers.update(ConnectionHandle(3), Some(at(40)));
        timers.update(ConnectionHandle(1), Some(at(5)));
        assert_eq!(timers.next(), Some(at(5)));
        assert_eq!(timers.pop(at(4)), None);
        assert_eq!(timers.pop(at(100)), Some(ConnectionHandle(1)));
        assert_eq!(timers.next(), Some(at(30)));
        timers.update(ConnectionHandle(3), None);
        assert_eq!(timers.pop(at(100)), None);
    }

    #[test]
    fn closed_connections_are_forgotten_together() {
        let mut timers = Timers::default();
        timers.update(ConnectionHandle(1), Some(at(5)));
        timers.update_closed(ConnectionHandle(1), at(FORGET_EVERY + 1));
        timers.update_closed(ConnectionHandle(2), at(2 * FORGET_EVERY - 1));
        assert_eq!(timers.next(), Some(at(2 * FORGET_EVERY)));
        timers.pop(at(2 * FORGET_EVERY));
        assert_eq!(timers.next(), Some(at(2 * FORGET_EVERY)));
    }

    #[test]
    fn removed_deadlines_do_not_expire() {
        let mut timers = Timers::default();
        timers.update(ConnectionHandle(0), Some(at(1)));
        timers.remove(ConnectionHandle(0));
        timers.remove(ConnectionHandle(7));
        assert_eq!(timers.next(), None);
        timers.update(ConnectionHandle(0), Some(at(9)));
        assert_eq!(timers.next(), Some(at(9)));
    }
}
