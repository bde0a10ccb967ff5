//! The runtime of this crate: clock, timers and tasks.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use marline::runtime::Timer;
use marline::{Instant, Runtime, TokioRuntime};
use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::task::{Unconstrained, unconstrained};
use tokio::time::Sleep;

/// A runtime, with shortcuts if it is tokio.
#[derive(Clone)]
pub(crate) struct RuntimeHandle {
    runtime: Arc<dyn Runtime>,
    is_tokio: bool,
}

/// When the measurement of a time began.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stopwatch {
    Tokio(tokio::time::Instant),
    Other(Instant),
}

/// The time limit has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elapsed;

impl RuntimeHandle {
    /// The given runtime; by default, the tokio runtime that the caller runs in.
    ///
    /// # Errors
    /// None is given, and the caller does not run in a tokio runtime.
    pub(crate) fn new(runtime: Option<Arc<dyn Runtime>>) -> io::Result<Self> {
        Ok(match runtime {
            Some(runtime) => Self {
                runtime,
                is_tokio: false,
            },
            None => Self {
                runtime: Arc::new(TokioRuntime::current()?),
                is_tokio: true,
            },
        })
    }

    /// The tokio runtime of `handle`.
    pub(crate) fn of(handle: Handle) -> Self {
        Self {
            runtime: Arc::new(TokioRuntime::of(handle)),
            is_tokio: true,
        }
    }

    /// The runtime, for endpoints.
    pub(crate) fn shared(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Whether tokio is available, for name resolution and TCP.
    pub(crate) fn has_tokio(&self) -> bool {
        self.is_tokio || Handle::try_current().is_ok()
    }

    /// Whether it is tokio's, with threads for what may block.
    pub(crate) fn is_tokio(&self) -> bool {
        self.is_tokio
    }

    /// Does `work`, which may block: with tokio, on a thread for that. Work that has begun is completed although the future is dropped.
    pub(crate) async fn unblock<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if !self.is_tokio {
            return work();
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime shuts down, and with it this task.
            Err(_) => std::future::pending().await,
        }
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Measures time as the timers of [`sleep`](Self::sleep) do, which may stand still in tests.
    pub(crate) fn stopwatch(&self) -> Stopwatch {
        match self.is_tokio {
            true => Stopwatch::Tokio(tokio::time::Instant::now()),
            false => Stopwatch::Other(self.now()),
        }
    }

    /// The time since `start`.
    pub(crate) fn elapsed(&self, start: Stopwatch) -> Duration {
        match start {
            Stopwatch::Tokio(start) => start.elapsed(),
            Stopwatch::Other(start) => self.now().saturating_since(start),
        }
    }

    /// Seconds since `start`, for reports.
    pub(crate) fn seconds_since(&self, start: Instant) -> f64 {
        self.now().saturating_since(start).as_secs_f64()
    }

    /// The current date, as time since 1970-01-01 UTC.
    pub(crate) fn unix_time(&self) -> Duration {
        self.runtime.unix_time()
    }

    /// Runs `task` until it ends: with tokio, on the runtime of the caller, which is that of its worker.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match Handle::try_current() {
            Ok(current) if self.is_tokio => drop(current.spawn(task)),
            _ => self.runtime.spawn(Box::pin(task)),
        }
    }

    /// Waits for `duration`.
    pub(crate) async fn sleep(&self, duration: Duration) {
        if self.is_tokio {
            return tokio::time::sleep(duration).await;
        }
        let mut timer = self.runtime.timer();
        timer.set(self.now() + duration);
        poll_fn(|cx| timer.poll(cx)).await;
    }

    /// Waits for `future`, but no longer than `limit`.
    ///
    /// Every step of every request has a limit, which need not be precise, and a timer of tokio's [`Runtime`]
    /// is a file descriptor: with tokio, its own timers are used.
    pub(crate) fn timeout<F: Future>(&self, limit: Duration, future: F) -> Timeout<'_, F> {
        match self.is_tokio {
            true => Timeout::Tokio {
                future,
                limit,
                timer: None,
            },
            false => Timeout::Other {
                future,
                runtime: &*self.runtime,
                limit,
                timer: None,
            },
        }
    }
}

pin_project! {
    /// See [`RuntimeHandle::timeout`]. RawValue by hand, as an `async fn` would store its future twice.
    #[project = TimeoutProjection]
    pub(crate) enum Timeout<'a, F> {
        Tokio {
            #[pin]
            future: F,
            limit: Duration,
            // Set at the first poll that has to wait: most steps are done at once, and reading the clock costs as much as many of them.
            #[pin]
            timer: Option<Unconstrained<Sleep>>,
        },
        Other {
            #[pin]
            future: F,
            runtime: &'a dyn Runtime,
            limit: Duration,
            // Set at the first poll that has to wait.
            timer: Option<Box<dyn Timer>>,
        },
    }
}

impl<F: Future> Future for Timeout<'_, F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            TimeoutProjection::Tokio {
                future,
                limit,
                mut timer,
            } => {
                if let Poll::Ready(output) = future.poll(cx) {
                    return Poll::Ready(Ok(output));
                }
                if timer.is_none() {
                    // It ends although the future always uses up the task's budget of polls.
                    timer.set(Some(unconstrained(tokio::time::sleep(*limit))));
                }
                match timer.as_pin_mut() {
                    Some(timer) => timer.poll(cx).map(|()| Err(Elapsed)),
                    None => Poll::Pending,
                }
            }
            TimeoutProjection::Other {
                future,
                runtime,
                limit,
                timer,
            } => {
                if let Poll::Ready(output) = future.poll(cx) {
                    return Poll::Ready(Ok(output));
                }
                let timer = timer.get_or_insert_with(|| {
                    let mut timer = runtime.timer();
                    timer.set(runtime.now() + *limit);
                    timer
                });
                timer.poll(cx).map(|()| Err(Elapsed))
            }
        }
    }
}

impl fmt::Debug for RuntimeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runtime.fmt(f)
    }
}
