//! The one place of this crate that knows what it runs on: clock, timers and tasks.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use marline::{Instant, Runtime, TokioRuntime};

/// A runtime, and what can be had cheaper where it is tokio's.
#[derive(Clone)]
pub(crate) struct World {
    runtime: Arc<dyn Runtime>,
    is_tokio: bool,
}

/// It took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elapsed;

impl World {
    /// The given runtime; by default, the tokio runtime that the caller runs in.
    ///
    /// # Errors
    /// None is given, and the caller runs in none.
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

    /// What endpoints run on.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Whether names can be looked up and TCP can be spoken here.
    pub(crate) fn has_tokio(&self) -> bool {
        self.is_tokio || tokio::runtime::Handle::try_current().is_ok()
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Seconds since `start`, as reports have it.
    pub(crate) fn seconds_since(&self, start: Instant) -> f64 {
        self.now().saturating_since(start).as_secs_f64()
    }

    /// The present date, as time since 1970-01-01 UTC.
    pub(crate) fn unix_time(&self) -> Duration {
        self.runtime.unix_time()
    }

    /// Runs `task` until it ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(Box::pin(task));
    }

    /// Waits.
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
    /// Limits are coarse and there is one for every step of every request, while a timer of tokio's
    /// [`Runtime`] is a file descriptor: there, tokio's own timers do.
    ///
    /// # Errors
    /// `future` was not ready in time.
    pub(crate) async fn timeout<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        if self.is_tokio {
            let result = tokio::time::timeout(limit, future).await;
            return result.map_err(|_| Elapsed);
        }
        let mut alarm = None;
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            let alarm = alarm.get_or_insert_with(|| {
                let mut timer = self.runtime.timer();
                timer.set(self.runtime.now() + limit);
                timer
            });
            alarm.poll(cx).map(|()| Err(Elapsed))
        })
        .await
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runtime.fmt(f)
    }
}
