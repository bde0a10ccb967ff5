//! How fast a client must receive a response.

use std::time::Duration;

use marline::Instant;

use super::super::Context;
use crate::http3::RequestError;
use crate::limits;
use crate::runtime::RuntimeHandle;

/// A response was not sent completely.
pub(super) struct Incomplete;

/// The time in which the next bytes of a response have to move: [`limits::MIN_PROGRESS_BYTES`] in each idle timeout, so
/// that single bytes keep no response alive.
pub(super) struct Pace<'a> {
    runtime: &'a RuntimeHandle,
    limit: Duration,
    deadline: Instant,
    moved: u64,
}

impl<'a> Pace<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        let limit = context.current.get().limits.idle_timeout;
        Self {
            runtime: &context.runtime,
            limit,
            deadline: context.runtime.now() + limit,
            moved: 0,
        }
    }

    /// Waits for a step that depends on the client; `None` if it takes too long.
    pub(super) async fn step<T>(&self, step: impl Future<Output = T>) -> Option<T> {
        let left = self.deadline.saturating_since(self.runtime.now());
        self.runtime.timeout(left, step).await.ok()
    }

    /// The same for a step without which the response is incomplete.
    pub(super) async fn must<T>(
        &self,
        step: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, Incomplete> {
        match self.step(step).await {
            Some(Ok(output)) => Ok(output),
            _ => Err(Incomplete),
        }
    }

    /// Waits for a step that does not depend on the client.
    pub(super) async fn pause<T>(&mut self, step: impl Future<Output = T>) -> T {
        let start = self.runtime.now();
        let output = step.await;
        self.deadline += self.runtime.now().saturating_since(start);
        output
    }

    /// `bytes` have moved.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
        if self.moved >= limits::MIN_PROGRESS_BYTES {
            self.moved = 0;
            self.deadline = self.runtime.now() + self.limit;
        }
    }

    /// Whether too few bytes have moved in time.
    pub(super) fn is_over(&self) -> bool {
        self.runtime.now() >= self.deadline
    }
}
