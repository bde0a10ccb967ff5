//! The tasks of a simulation.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use marline::runtime::Task;
use slab::Slab;

use crate::fabric::Node;

/// All tasks of a simulation.
#[derive(Default)]
pub(crate) struct Executor {
    /// Jobs in the order in which they were woken.
    ready: Mutex<VecDeque<Arc<Job>>>,
    jobs: Mutex<Jobs>,
}

#[derive(Default)]
struct Jobs {
    unfinished: Slab<Arc<Job>>,
    closed: bool,
}

/// One task.
pub(crate) struct Job {
    executor: Arc<Executor>,
    /// The host on which it runs; `None` for the main future.
    host: Option<Node>,
    /// Its index among the unfinished tasks.
    number: usize,
    /// Whether it is in the ready queue.
    queued: AtomicBool,
    task: Mutex<Option<Task>>,
}

/// A panicked task has poisoned the lock; the remaining state is only dropped and printed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Executor {
    /// Queues `task` for `host`; drops it once the executor is closed.
    pub(crate) fn spawn(self: &Arc<Self>, host: Node, task: Task) {
        let mut jobs = lock(&self.jobs);
        if jobs.closed {
            drop(jobs);
            return drop(task);
        }
        let entry = jobs.unfinished.vacant_entry();
        let job = Arc::new(Job {
            executor: Arc::clone(self),
            host: Some(host),
            number: entry.key(),
            queued: AtomicBool::new(false),
            task: Mutex::new(Some(task)),
        });
        entry.insert(Arc::clone(&job));
        drop(jobs);
        job.wake();
    }

    /// A job for the main future, which is polled elsewhere; it is ready immediately.
    pub(crate) fn main(self: &Arc<Self>) -> Arc<Job> {
        let job = Arc::new(Job {
            executor: Arc::clone(self),
            host: None,
            number: 0,
            queued: AtomicBool::new(false),
            task: Mutex::new(None),
        });
        Arc::clone(&job).wake();
        job
    }

    /// The next job that can run.
    pub(crate) fn next(&self) -> Option<Arc<Job>> {
        let job = lock(&self.ready).pop_front()?;
        job.queued.store(false, Ordering::Relaxed);
        Some(job)
    }

    /// The hosts of the unfinished tasks.
    pub(crate) fn unfinished(&self) -> Vec<Node> {
        let jobs = lock(&self.jobs);
        let hosts = jobs.unfinished.iter().filter_map(|(_, job)| job.host);
        hosts.collect()
    }

    /// Drops all tasks, and those that are spawned later.
    pub(crate) fn close(&self) {
        let jobs = {
            let mut jobs = lock(&self.jobs);
            jobs.closed = true;
            std::mem::take(&mut jobs.unfinished)
        };
        // Dropping a task may wake or spawn others, so no lock is held.
        for (_, job) in jobs {
            let task = lock(&job.task).take();
            drop(task);
        }
        lock(&self.ready).clear();
    }
}

impl Job {
    /// Whether this is the job of the main future.
    pub(crate) fn is_main(&self) -> bool {
        self.host.is_none()
    }

    /// Polls the task once.
    pub(crate) fn run(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut slot = lock(&self.task);
        let Some(task) = slot.as_mut() else {
            return;
        };
        if task
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            let task = slot.take();
            drop(slot);
            drop(task);
            lock(&self.executor.jobs).unfinished.try_remove(self.number);
        }
    }
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            let executor = Arc::clone(&self.executor);
            lock(&executor.ready).push_back(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.executor.ready).push_back(Arc::clone(self));
        }
    }
}
