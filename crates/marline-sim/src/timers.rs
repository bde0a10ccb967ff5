//! The timers of all hosts.

use std::task::Waker;

use marline::Instant;
use slab::Slab;

/// Timers in a heap with their positions: setting a timer again moves its entry, so that no stale entries remain.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    slots: Slab<Slot>,
    /// Entries by deadline; of equal deadlines the lower slot expires first.
    heap: Vec<(Instant, usize)>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Position in the heap, if the timer is set.
    position: Option<usize>,
    waker: Option<Waker>,
}

impl Timers {
    /// A new timer that is not set.
    pub(crate) fn add(&mut self) -> usize {
        self.slots.insert(Slot::default())
    }

    /// Removes a timer. The caller drops its waker, outside the lock.
    pub(crate) fn remove(&mut self, timer: usize) -> Option<Waker> {
        self.unset(timer);
        self.slots.remove(timer).waker
    }

    /// Sets a timer that wakes `waker` at `deadline`; replaces its earlier setting.
    pub(crate) fn set(&mut self, timer: usize, deadline: Instant, waker: &Waker) {
        let slot = &mut self.slots[timer];
        match &mut slot.waker {
            Some(known) => known.clone_from(waker),
            None => slot.waker = Some(waker.clone()),
        }
        match slot.position {
            Some(position) if self.heap[position].0 == deadline => {}
            Some(position) => {
                self.heap[position].0 = deadline;
                self.restore_order(position);
            }
            None => {
                self.heap.push((deadline, timer));
                self.restore_order(self.heap.len() - 1);
            }
        }
    }

    /// Stops a timer until it is set again.
    pub(crate) fn unset(&mut self, timer: usize) {
        let Some(position) = self.slots[timer].position.take() else {
            return;
        };
        self.heap.swap_remove(position);
        if position < self.heap.len() {
            self.restore_order(position);
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|&(deadline, _)| deadline)
    }

    /// Stops the timer with the earliest deadline if that is not after `now`; returns its waker.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Waker> {
        let &(deadline, timer) = self.heap.first()?;
        if deadline > now {
            return None;
        }
        self.unset(timer);
        self.slots[timer].waker.clone()
    }

    /// Restores the order of the heap after a change of the entry at `position`.
    fn restore_order(&mut self, mut position: usize) {
        while position > 0 && self.heap[position] < self.heap[(position - 1) / 2] {
            self.heap.swap(position, (position - 1) / 2);
            self.record_position(position);
            position = (position - 1) / 2;
        }
        while let Some(child) = self.smaller_child(position) {
            if self.heap[position] <= self.heap[child] {
                break;
            }
            self.heap.swap(position, child);
            self.record_position(position);
            position = child;
        }
        self.record_position(position);
    }

    fn smaller_child(&self, position: usize) -> Option<usize> {
        let children = 2 * position + 1..(2 * position + 3).min(self.heap.len());
        children.min_by_key(|&child| self.heap[child])
    }

    fn record_position(&mut self, position: usize) {
        let (_, timer) = self.heap[position];
        self.slots[timer].position = Some(position);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use proptest::prelude::*;

    use super::*;

    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn setting_a_timer_again_moves_its_entry() {
        let mut timers = Timers::default();
        let timer = timers.add();
        for nanos in 0..1000 {
            timers.set(timer, Instant::from_nanos(2000 - nanos), Waker::noop());
        }
        assert_eq!(timers.heap.len(), 1);
        assert_eq!(timers.next(), Some(Instant::from_nanos(1001)));
        assert!(timers.pop(Instant::from_nanos(1000)).is_none());
        assert!(timers.pop(Instant::from_nanos(1001)).is_some());
        assert!(timers.pop(Instant::from_nanos(5000)).is_none());
        timers.remove(timer);
        assert_eq!(timers.next(), None);
    }

    proptest! {
        /// The model is a list of deadlines that is searched each time.
        #[test]
        fn timers_expire_in_order_of_deadline(steps in prop::collection::vec((0..8usize, 0..40u64, 0..4u8), 1..200)) {
            let bells: Vec<_> = (0..8).map(|_| Arc::new(CountingWaker(AtomicUsize::new(0)))).collect();
            let mut timers = Timers::default();
            let ids: Vec<_> = (0..8).map(|_| timers.add()).collect();
            let mut model: Vec<Option<u64>> = vec![None; 8];
            let mut rung = [0; 8];
            for (timer, nanos, kind) in steps {
                match kind {
                    0 | 1 => {
                        let waker = Waker::from(Arc::clone(&bells[timer]));
                        timers.set(ids[timer], Instant::from_nanos(nanos), &waker);
                        model[timer] = Some(nanos);
                    }
                    2 => {
                        timers.unset(ids[timer]);
                        model[timer] = None;
                    }
                    _ => {
                        let due = model.iter().zip(0..).filter_map(|(at, i)| Some(((*at)?, i)));
                        let first = due.min().filter(|&(at, _)| at <= nanos);
                        let popped = timers.pop(Instant::from_nanos(nanos));
                        prop_assert_eq!(popped.is_some(), first.is_some());
                        if let Some((_, i)) = first {
                            model[i] = None;
                            rung[i] += 1;
                        }
                        popped.into_iter().for_each(Waker::wake);
                    }
                }
                let next = model.iter().flatten().min();
                prop_assert_eq!(timers.next(), next.map(|&at| Instant::from_nanos(at)));
                for (bell, rung) in bells.iter().zip(rung) {
                    prop_assert_eq!(bell.0.load(Ordering::Relaxed), rung);
                }
            }
        }
    }
}
