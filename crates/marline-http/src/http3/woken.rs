//! A part of a task's work, with a waker of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

/// Whether a part of a task's work was woken, so that other wake-ups of the task leave it alone.
pub(super) struct Woken {
    shared: Arc<Shared>,
    /// That of the part, which wakes the task as well.
    waker: Waker,
}

struct Shared {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Woken {
    /// A part that is woken for the first time.
    pub(super) fn new() -> Self {
        let shared = Arc::new(Shared {
            is_woken: AtomicBool::new(true),
            task: AtomicWaker::new(),
        });
        Self {
            waker: Waker::from(Arc::clone(&shared)),
            shared,
        }
    }

    /// The waker for the part's work, if it was woken since the last call. `task` is woken with it from now on.
    pub(super) fn take(&self, task: &Waker) -> Option<Waker> {
        // Before the flag is read: otherwise a call between the two would wake nobody.
        self.shared.task.register(task);
        let is_woken = self.shared.is_woken.swap(false, Ordering::AcqRel);
        is_woken.then(|| self.waker.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_part_is_due_once_for_each_time_it_was_woken() {
        let (part, count) = (Woken::new(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let waker = part.take(&task).expect("it begins so");
        assert!(part.take(&task).is_none());
        waker.wake_by_ref();
        waker.wake();
        assert!(count.0.load(Ordering::Relaxed) > 0);
        assert!(part.take(&task).is_some());
        assert!(part.take(&task).is_none());
    }

    #[test]
    fn the_task_of_the_last_call_is_woken() {
        let part = Woken::new();
        let counts = [(); 2].map(|()| Arc::new(Count::default()));
        let [first, second] = counts
            .each_ref()
            .map(|count| Waker::from(Arc::clone(count)));
        let waker = part.take(&first).expect("it begins so");
        part.take(&second);
        waker.wake();
        let woken = counts.map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
    }
}
