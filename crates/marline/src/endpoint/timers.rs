//! When each connection wants to be looked at.

use std::collections::BTreeSet;

use marline_proto::{ConnectionHandle, Instant};

/// One deadline a connection, in order.
///
/// A deadline that moves back keeps its place and is found too early, once: on a busy connection
/// nearly every packet moves it, and few are ever reached.
#[derive(Default)]
pub(super) struct Timers {
    order: BTreeSet<(Instant, usize)>,
    /// By handle: the deadline in `order`.
    placed: Vec<Option<Instant>>,
}

impl Timers {
    /// Looks at the connection at `deadline`, or soon before.
    pub(super) fn update(&mut self, handle: ConnectionHandle, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            return self.remove(handle);
        };
        if self.placed.len() <= handle.0 {
            self.placed.resize(handle.0 + 1, None);
        }
        let placed = &mut self.placed[handle.0];
        match *placed {
            Some(earlier) if earlier <= deadline => return,
            Some(later) => {
                self.order.remove(&(later, handle.0));
            }
            None => {}
        }
        *placed = Some(deadline);
        self.order.insert((deadline, handle.0));
    }

    /// Forgets the connection.
    pub(super) fn remove(&mut self, handle: ConnectionHandle) {
        if let Some(deadline) = self.placed.get_mut(handle.0).and_then(Option::take) {
            self.order.remove(&(deadline, handle.0));
        }
    }

    /// The next time to look.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(deadline, _)| deadline)
    }

    /// A connection to look at by `now`; its deadline must be given anew.
    pub(super) fn pop(&mut self, now: Instant) -> Option<ConnectionHandle> {
        let &(deadline, handle) = self.order.first()?;
        if deadline > now {
            return None;
        }
        self.order.pop_first();
        self.placed[handle] = None;
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
    fn pops_in_order_and_keeps_the_earlier_place() {
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
    fn a_forgotten_connection_leaves_nothing() {
        let mut timers = Timers::default();
        timers.update(ConnectionHandle(0), Some(at(1)));
        timers.remove(ConnectionHandle(0));
        timers.remove(ConnectionHandle(7));
        assert_eq!(timers.next(), None);
        timers.update(ConnectionHandle(0), Some(at(9)));
        assert_eq!(timers.next(), Some(at(9)));
    }
}
