//! The minimum speed at which a client must receive a response.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use marline::Instant;

use super::super::Context;
use crate::http3::{QuicTransport, RequestError};
use crate::runtime::RuntimeHandle;

/// The reason why a response was not sent completely.
pub(super) enum Incomplete {
    /// The client took too little in time.
    Slow,
    /// The content failed, or the stream has ended.
    Broken,
}

/// The common progress of the responses of a connection. They are sent in the order of their priorities, so that one may have to
/// wait for as long as the others take.
pub(super) struct Responses {
    open: AtomicU64,
    moved: AtomicU64,
    /// Returns the bytes that were written to the connection and are not acknowledged.
    unacknowledged: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Responses {
    pub(super) fn of<C: QuicTransport>(connection: C) -> Self {
        Self {
            open: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            unacknowledged: Box::new(move || connection.unacknowledged()),
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            moved: self.moved.load(Relaxed),
            unacknowledged: (self.unacknowledged)(),
        }
    }
}

/// The progress of the responses of a connection.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Bytes written.
    moved: u64,
    /// Of these, bytes that the client has not acknowledged.
    unacknowledged: u64,
}

impl Progress {
    /// Bytes written or acknowledged since `before`, whichever is more: with windows of megabytes, those of minutes may be written
    /// at once.
    fn since(&self, before: &Self) -> u64 {
        let moved = self.moved - before.moved;
        let acknowledged = (moved + before.unacknowledged).saturating_sub(self.unacknowledged);
        moved.max(acknowledged)
    }
}

/// The time in which the next bytes of a response have to move: `min_progress_bytes` in each idle timeout, so that single bytes
/// keep no response alive. A waiting response is given more time if the connection has moved as much for each of its responses.
pub(super) struct Pace<'a> {
    runtime: &'a RuntimeHandle,
    responses: &'a Responses,
    limit: Duration,
    min_bytes: u64,
    /// `None` until a step has to wait: most steps need not.
    wait: Option<Wait>,
}

/// A time in which enough bytes have to move.
struct Wait {
    deadline: Instant,
    moved: u64,
    /// The connection's progress when it began.
    before: Progress,
}

impl<'a> Pace<'a> {
    pub(super) fn new(context: &'a Context, responses: &'a Responses) -> Self {
        let current = context.current.get();
        responses.open.fetch_add(1, Relaxed);
        Self {
            runtime: &context.runtime,
            responses,
            limit: current.limits.idle_timeout,
            min_bytes: current.limits.min_progress_bytes,
            wait: None,
        }
    }

    /// Waits for a step that depends on the client; `None` if it takes too long.
    pub(super) async fn step<T>(&mut self, step: impl Future<Output = T>) -> Option<T> {
        let mut step = pin!(step);
        // Most steps need not wait, and reading the clock costs as much as many of them.
        if let Some(output) = poll_once(step.as_mut()).await {
            return Some(output);
        }
        loop {
            let Self {
                runtime, responses, ..
            } = *self;
            let limit = self.limit;
            let wait = self.wait.get_or_insert_with(|| Wait {
                deadline: runtime.now() + limit,
                moved: 0,
                before: responses.progress(),
            });
            let left = wait.deadline.saturating_since(runtime.now());
            if let Ok(output) = runtime.timeout(left, step.as_mut()).await {
                return Some(output);
            }
            let moved = responses.progress().since(&wait.before);
            let open = responses.open.load(Relaxed);
            if moved < self.min_bytes.saturating_mul(open) {
                return None;
            }
            self.restart();
        }
    }

    /// The same for a step without which the response is incomplete.
    pub(super) async fn must<T>(
        &mut self,
        step: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, Incomplete> {
        match self.step(step).await {
            Some(Ok(output)) => Ok(output),
            Some(Err(_)) => Err(Incomplete::Broken),
            None => Err(Incomplete::Slow),
        }
    }

    /// Waits for a step that does not depend on the client.
    pub(super) async fn pause<T>(&mut self, step: impl Future<Output = T>) -> T {
        let mut step = pin!(step);
        if let Some(output) = poll_once(step.as_mut()).await {
            return output;
        }
        let Some(wait) = &mut self.wait else {
            return step.await;
        };
        let start = self.runtime.now();
        let output = step.await;
        wait.deadline += self.runtime.now().saturating_since(start);
        output
    }

    /// `bytes` have moved.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.responses.moved.fetch_add(bytes, Relaxed);
        if let Some(wait) = &mut self.wait {
            wait.moved += bytes;
            if wait.moved >= self.min_bytes {
                self.restart();
            }
        }
    }

    /// The next step that has to wait has all of the time.
    pub(super) fn restart(&mut self) {
        self.wait = None;
    }

    /// Whether too few bytes have moved in time.
    pub(super) fn is_over(&self) -> bool {
        self.wait
            .as_ref()
            .is_some_and(|wait| self.runtime.now() >= wait.deadline)
    }
}

/// The output of `step` if it is ready now.
async fn poll_once<F: Future>(mut step: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match step.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

impl Drop for Pace<'_> {
    fn drop(&mut self) {
        self.responses.open.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(moved: u64, unacknowledged: u64) -> Progress {
        Progress {
            moved,
            unacknowledged,
        }
    }

    #[test]
    fn what_is_acknowledged_is_progress_though_nothing_can_be_written() {
        let before = progress(100, 80);
        assert_eq!(progress(100, 80).since(&before), 0);
        assert_eq!(progress(100, 30).since(&before), 50);
        assert_eq!(progress(300, 280).since(&before), 200);
        assert_eq!(progress(110, 5).since(&before), 85);
    }
}
