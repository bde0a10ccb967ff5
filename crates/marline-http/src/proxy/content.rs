//! The content of a response on its way through a proxy.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::fields;
use super::request_body::HeldBody;
use crate::body::{Body, BoxError};
use crate::server::{ProxiedContent, Stopped};

/// The reason why the content of a response ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cut {
    #[error("the server behind the proxy sent nothing for {} s", .0.as_secs_f64())]
    Idle(Duration),
    #[error("the server behind the proxy sent another length than it announced")]
    Length,
    #[error("other networks of clients needed the place of the request")]
    Evicted,
}

/// State that is held until the content of a response has ended.
pub(super) trait Guard: Send + Unpin + 'static {
    /// `bytes` bytes of the content have arrived.
    fn on_received(&self, _bytes: u64) {}

    /// Completes when the response has to end for others; `None` if it never has to.
    fn evicted(&self) -> Option<Stopped> {
        None
    }
}

impl<A: Guard, B: Guard> Guard for (A, B) {
    fn on_received(&self, bytes: u64) {
        self.0.on_received(bytes);
        self.1.on_received(bytes);
    }

    fn evicted(&self) -> Option<Stopped> {
        self.0.evicted().or_else(|| self.1.evicted())
    }
}

impl<A: Guard> Guard for Option<A> {
    fn on_received(&self, bytes: u64) {
        self.iter().for_each(|guard| guard.on_received(bytes));
    }

    fn evicted(&self) -> Option<Stopped> {
        self.as_ref()?.evicted()
    }
}

/// Content that has the announced length and arrives in time, or fails. `guard` is dropped with it.
pub(super) struct Content<G> {
    body: Body,
    /// The part of the server's budget that it uses.
    passage: ProxiedContent,
    /// Bytes that are still to come, if known.
    left: Option<u64>,
    idle_timeout: Duration,
    /// The content of the request: while it is being sent, the response may wait.
    request: HeldBody,
    alarm: Option<Pin<Box<Sleep>>>,
    is_over: bool,
    /// Completes when it has to end for others.
    evicted: Option<Stopped>,
    guard: G,
}

impl<G: Guard> Content<G> {
    pub(super) fn new(
        body: Body,
        length: Option<u64>,
        idle_timeout: Duration,
        request: HeldBody,
        guard: G,
    ) -> Self {
        Self {
            body,
            passage: request.way_back(),
            left: length,
            idle_timeout,
            request,
            alarm: None,
            is_over: false,
            evicted: guard.evicted(),
            guard,
        }
    }

    /// Ready if nothing arrives for too long. Only time during which the content is polled counts.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.idle_timeout;
        let begun = Instant::now() + limit;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(begun)));
        while alarm.as_mut().poll(cx).is_ready() {
            let next = self.request.last() + limit;
            if next <= Instant::now() {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(next);
        }
        Poll::Pending
    }

    fn count(&mut self, frame: &Frame<Bytes>) -> Result<(), Cut> {
        let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(bytes).ok_or(Cut::Length)?;
        }
        self.guard.on_received(bytes);
        Ok(())
    }
}

impl<G: Guard> http_body::Body for Content<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if let Some(evicted) = &mut this.evicted
            && Pin::new(evicted).poll(cx).is_ready()
        {
            this.is_over = true;
            return Poll::Ready(Some(Err(Cut::Evicted.into())));
        }
        let Poll::Ready(frame) = this.passage.poll_frame(&mut this.body, cx) else {
            return this.poll_idle(cx).map(|()| {
                this.is_over = true;
                Some(Err(Cut::Idle(this.idle_timeout).into()))
            });
        };
        this.alarm = None;
        let frame = match frame {
            Some(Ok(mut frame)) => match this.count(&frame) {
                Ok(()) if frame.is_trailers() => {
                    if let Some(trailers) = frame.trailers_mut() {
                        fields::clean_trailers(trailers);
                    }
                    return Poll::Ready(Some(Ok(frame)));
                }
                Ok(()) => return Poll::Ready(Some(Ok(frame))),
                Err(cut) => Some(Err(cut.into())),
            },
            None if this.left.is_some_and(|left| left > 0) => Some(Err(Cut::Length.into())),
            end => end,
        };
        this.is_over = true;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let has_ended = self.passage.is_empty() && self.body.is_end_stream();
        self.is_over || (has_ended && self.left.unwrap_or_default() == 0)
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            Some(left) => SizeHint::with_exact(left),
            None if self.passage.is_empty() => self.body.size_hint(),
            None => SizeHint::default(),
        }
    }
}
