//! Content on its way through a proxy, from one side to the other.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Extensions;
use http_body::{Body as _, Frame};

use super::budget::{Grant, UsedUp};
use super::resources::Origin;
use crate::body::{Body, BoxError};
use crate::limits;

/// Waits for a part of the budget.
type Waiting = Pin<Box<dyn Future<Output = Result<Grant, UsedUp>> + Send>>;

/// One direction of a request: its content uses the budget of the server from its arrival until the other side has received it.
/// If that is used up, nothing more is read.
pub(crate) struct ProxiedContent {
    /// `None` without a server.
    origin: Option<Origin>,
    /// Content that has arrived without budget so far.
    arrived: Bytes,
    waiting: Option<Waiting>,
}

impl ProxiedContent {
    /// A direction of the request that has these `extensions`.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        Self::new(extensions.get().cloned())
    }

    /// The other direction of the same request.
    pub(crate) fn opposite(&self) -> Self {
        Self::new(self.origin.clone())
    }

    fn new(origin: Option<Origin>) -> Self {
        Self {
            origin,
            arrived: Bytes::new(),
            waiting: None,
        }
    }

    /// Whether nothing waits for the budget.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// The next part of `body`.
    pub(crate) fn poll_frame(
        &mut self,
        body: &mut Body,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.arrived.is_empty() {
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) if frame.is_data() => {
                    self.arrived = frame.into_data().unwrap_or_default();
                }
                other => return Poll::Ready(other),
            }
        }
        let held = ready!(self.poll_hold(cx));
        Poll::Ready(Some(held.map(Frame::data).map_err(Into::into)))
    }

    /// The arrived content, as far as there is budget for it.
    fn poll_hold(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, UsedUp>> {
        let Some(origin) = &self.origin else {
            return Poll::Ready(Ok(std::mem::take(&mut self.arrived)));
        };
        if self.arrived.is_empty() {
            return Poll::Ready(Ok(Bytes::new()));
        }
        let wanted = self.arrived.len() + limits::HELD_PART_BYTES;
        let grant = match &mut self.waiting {
            None => origin.try_take(wanted),
            Some(_) => None,
        };
        let grant = match grant {
            Some(grant) => grant,
            None => {
                let waiting = &mut self.waiting;
                let waiting = waiting.get_or_insert_with(|| Box::pin(origin.take(wanted)));
                let granted = ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
                granted?
            }
        };
        // Where little is left, a part need not be a few bytes.
        let covered = grant.bytes().saturating_sub(limits::HELD_PART_BYTES);
        let part = covered.max(limits::MIN_CHUNK_BYTES);
        let part = self.arrived.split_to(part.min(self.arrived.len()));
        Poll::Ready(Ok(grant.hold_part(part)))
    }
}
