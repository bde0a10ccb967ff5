//! The deadlines of an endpoint's connections.

use std::collections::BTreeSet;

use marline_proto::{ConnectionHandle, Instant};

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
