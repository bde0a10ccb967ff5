//! Tasks, and which of them can run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use marline::runtime::Task;
use slab::Slab;

use crate::fabric::Node;

/// All tasks of a world.
#[derive(Default)]
pub(super) struct Executor {
    /// In the order in which they were woken.
    ready: Mutex<VecDeque<Arc<Job>>>,
    jobs: Mutex<Jobs>,
}

#[derive(Default)]
struct Jobs {
    unfinished: Slab<Arc<Job>>,
    closed: bool,
}

/// One task.
pub(super) struct Job {
    executor: Arc<Executor>,
    /// On whose behalf it runs; `None` for the future that the world was asked to run.
    host: Option<Node>,
    /// Among the unfinished.
    number: usize,
    /// It is among those that can run.
    queued: AtomicBool,
    task: Mutex<Option<Task>>,
}

/// A panic in one task is the end of the world, and only its remains are looked at then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Executor {
    /// Runs `task` on behalf of `host`, soon; drops it if the world is over.
    pub(super) fn spawn(self: &Arc<Self>, host: Node, task: Task) {
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

    /// Stands for a future that is polled elsewhere, and can run at once.
    pub(super) fn main(self: &Arc<Self>) -> Arc<Job> {
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

    /// The next that can run.
    pub(super) fn next(&self) -> Option<Arc<Job>> {
        let job = lock(&self.ready).pop_front()?;
        job.queued.store(false, Ordering::Relaxed);
        Some(job)
    }

    /// Tasks that have not ended, by the host on whose behalf they run.
    pub(super) fn unfinished(&self) -> Vec<Node> {
        let jobs = lock(&self.jobs);
        let hosts = jobs.unfinished.iter().filter_map(|(_, job)| job.host);
        hosts.collect()
    }

    /// Drops all tasks, and those that come.
    pub(super) fn close(&self) {
        let jobs = {
            let mut jobs = lock(&self.jobs);
            jobs.closed = true;
            std::mem::take(&mut jobs.unfinished)
        };
        // What tasks do when they are dropped may wake others, or try to spawn: no lock is held.
        for (_, job) in jobs {
            let task = lock(&job.task).take();
            drop(task);
        }
        lock(&self.ready).clear();
    }
}

impl Job {
    /// Whether it stands for the future that the world was asked to run.
    pub(super) fn is_main(&self) -> bool {
        self.host.is_none()
    }

    /// Polls the task once.
    pub(super) fn run(self: Arc<Self>) {
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
