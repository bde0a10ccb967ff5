//! Tasks that end with their owner, on any runtime.

use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, abortable};
use slab::Slab;
use tokio::sync::mpsc;

use crate::runtime::RuntimeHandle;

/// Running tasks, and the results of those that have ended. Dropping the set cancels all tasks.
pub(crate) struct TaskSet<T> {
    runtime: RuntimeHandle,
    running: Slab<AbortHandle>,
    ended: mpsc::UnboundedReceiver<(usize, Option<T>)>,
    report: mpsc::UnboundedSender<(usize, Option<T>)>,
}

/// A task panicked, or its runtime is shutting down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task has ended before its work was done")]
pub(crate) struct Unfinished;

impl<T: Send + 'static> TaskSet<T> {
    /// An empty set.
    pub(crate) fn new(runtime: &RuntimeHandle) -> Self {
        let (report, ended) = mpsc::unbounded_channel();
        Self {
            runtime: runtime.clone(),
            running: Slab::new(),
            ended,
            report,
        }
    }

    /// Runs `task` until it ends, or the set is dropped.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) {
        let runtime = self.runtime.clone();
        let task = self.add(task);
        runtime.spawn(task);
    }

    /// The same, on the given `runtime`.
    pub(crate) fn spawn_on(
        &mut self,
        runtime: &RuntimeHandle,
        task: impl Future<Output = T> + Send + 'static,
    ) {
        let task = self.add(task);
        runtime.shared().spawn(Box::pin(task));
    }

    fn add<F: Future<Output = T> + Send + 'static>(
        &mut self,
        task: F,
    ) -> impl Future<Output = ()> + Send + 'static + use<T, F> {
        // On the heap: tasks of requests have kilobytes, which every layer around them and their ends would copy.
        let (task, handle) = abortable(Box::pin(task));
        let end = End {
            key: self.running.insert(handle),
            result: None,
            report: self.report.clone(),
        };
        // If the task panics or is cancelled, dropping the closure reports it.
        task.map(move |result| end.with(result.ok()))
    }

    /// Whether every task has ended and its result was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The result of the next task that ends; `None` if the set is empty. Safe to cancel.
    pub(crate) async fn join_next(&mut self) -> Option<Result<T, Unfinished>> {
        if self.running.is_empty() {
            return None;
        }
        let (key, result) = self.ended.recv().await?;
        self.running.remove(key);
        Some(result.ok_or(Unfinished))
    }

    /// Forgets the tasks that have ended, whose results are not used.
    pub(crate) fn forget_ended(&mut self) {
        while let Ok((key, _)) = self.ended.try_recv() {
            self.running.remove(key);
        }
    }

    /// Cancels all tasks, and waits until they have been dropped.
    pub(crate) async fn end(mut self) {
        for (_, handle) in &self.running {
            handle.abort();
        }
        while self.join_next().await.is_some() {}
    }
}

impl<T> Drop for TaskSet<T> {
    fn drop(&mut self) {
        for (_, handle) in &self.running {
            handle.abort();
        }
    }
}

/// Notifies the set that a task has ended, when dropped.
struct End<T> {
    key: usize,
    result: Option<T>,
    report: mpsc::UnboundedSender<(usize, Option<T>)>,
}

impl<T> End<T> {
    fn with(mut self, result: Option<T>) {
        self.result = result;
    }
}

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        // The set may have been dropped.
        let _ = self.report.send((self.key, self.result.take()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    fn set<T: Send + 'static>() -> TaskSet<T> {
        TaskSet::new(&RuntimeHandle::new(None).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn results_come_as_tasks_end() {
        let mut tasks = set();
        assert_eq!(tasks.join_next().await, None);
        for delay in [20, 10, 0] {
            tasks.spawn(async move {
                tokio::time::sleep(Duration::from_millis(delay)).await;
                delay
            });
        }
        for delay in [0, 10, 20] {
            assert!(!tasks.is_empty());
            assert_eq!(tasks.join_next().await, Some(Ok(delay)));
        }
        assert!(tasks.is_empty());
        tasks.spawn(async { panic!("this is a test") });
        assert_eq!(tasks.join_next().await, Some(Err(Unfinished)));
        assert_eq!(tasks.join_next().await, None);
    }

    #[tokio::test]
    async fn ended_tasks_are_forgotten_and_others_run_on() {
        let mut tasks = set();
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn(async { 1 });
        tasks.spawn(async {
            let _ = finished.await;
            2
        });
        tokio::task::yield_now().await;
        tasks.forget_ended();
        assert_eq!(tasks.running.len(), 1);
        finish.send(()).unwrap();
        assert_eq!(tasks.join_next().await, Some(Ok(2)));
        tasks.forget_ended();
        assert!(tasks.is_empty());
    }

    #[tokio::test]
    async fn tasks_end_with_their_set() {
        struct Counted(Arc<AtomicUsize>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_add(1, SeqCst);
            }
        }
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut tasks = set::<()>();
        for _ in 0..3 {
            let counted = Counted(Arc::clone(&dropped));
            tasks.spawn(async move {
                let _counted = counted;
                std::future::pending::<()>().await;
            });
        }
        tokio::task::yield_now().await;
        let mut ended = set::<()>();
        let counted = Counted(Arc::clone(&dropped));
        ended.spawn(async move {
            let _counted = counted;
            std::future::pending::<()>().await;
        });
        ended.end().await;
        assert_eq!(dropped.load(SeqCst), 1);
        drop(tasks);
        while dropped.load(SeqCst) < 4 {
            tokio::task::yield_now().await;
        }
    }
}
