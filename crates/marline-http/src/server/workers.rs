//! The workers of a server: threads with a runtime of their own, each of which accepts connections and serves them to their
//! end.

use std::io;
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::limits;
use crate::runtime::RuntimeHandle;

/// The workers of a server. Their threads end when it is dropped, with all tasks that are left.
pub(super) struct Workers(Vec<Worker>);

/// A worker; the only one of a server runs where its caller does.
pub(super) struct Worker {
    runtime: RuntimeHandle,
    thread: Option<Thread>,
}

/// The thread of a worker, which runs until this is dropped.
struct Thread {
    handle: Handle,
    _running: oneshot::Sender<()>,
}

impl Workers {
    /// Starts `count` workers. If it is one, that is `runtime`; another than tokio's has no others.
    pub(super) fn start(count: usize, runtime: &RuntimeHandle) -> io::Result<Self> {
        if count <= 1 || !runtime.is_tokio() {
            let runtime = runtime.clone();
            return Ok(Self(vec![Worker {
                runtime,
                thread: None,
            }]));
        }
        let blocking = (limits::BLOCKING_THREADS / count).max(limits::MIN_BLOCKING_THREADS);
        let workers = (0..count).map(|number| Worker::start(number, blocking));
        Ok(Self(workers.collect::<io::Result<_>>()?))
    }

    pub(super) fn all(&self) -> &[Worker] {
        &self.0
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

impl Worker {
    fn start(number: usize, blocking: usize) -> io::Result<Self> {
        let name = format!("worker {number}");
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_name(&name)
            .max_blocking_threads(blocking)
            .build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name(name).spawn(move || {
            // The sender is dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(Self {
            runtime: RuntimeHandle::of(handle.clone()),
            thread: Some(Thread {
                handle,
                _running: running,
            }),
        })
    }

    /// The runtime of its connections.
    pub(super) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    /// Makes its runtime that of sockets which are opened until the result is dropped.
    pub(super) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.thread.as_ref().map(|thread| thread.handle.enter())
    }

    /// Runs `task` on tokio: on its own thread if it has one.
    pub(super) fn spawn(
        &self,
        tasks: &mut JoinSet<()>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        match &self.thread {
            Some(thread) => tasks.spawn_on(task, &thread.handle),
            None => tasks.spawn(task),
        };
    }
}
