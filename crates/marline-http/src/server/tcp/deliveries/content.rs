//! The content of responses on its way to a client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body as _, Frame, SizeHint};
use slab::Slab;

use super::{Deliveries, Delivery, Turn};
use crate::body::{Body, BoxError};

/// A response in transit: its content, and waiting parts of it. It has ended when all of these are dropped.
pub(super) struct Outgoing {
    pub(super) deliveries: Deliveries,
    pub(super) response: usize,
    /// That of the response.
    pub(super) number: u64,
}

impl Outgoing {
    /// Content was passed to the connection; `is_whole` is whether it is complete.
    pub(super) fn passed(&self, bytes: usize, is_whole: bool) {
        let bytes = bytes as u64;
        let mut guard = self.deliveries.lock();
        let state = &mut *guard;
        let Some(delivery) = state.responses.get_mut(self.response) else {
            return;
        };
        delivery.record.passed(bytes, is_whole);
        delivery.outstanding += bytes;
        delivery.untaken += bytes;
        delivery.is_whole = bytes > 0 && is_whole;
        if bytes > 0 && delivery.turn.is_none() {
            delivery.turn = Some(state.turns.begin());
        }
        state.outstanding += bytes;
    }

    /// Content was written to a buffer that is flushed.
    pub(super) fn taken(&self, bytes: usize) {
        let mut state = self.deliveries.lock();
        state.on_taken(self.response, bytes as u64);
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let mut state = self.deliveries.lock();
        let (mut of_response, mut turn) = (None, None);
        state.list(self.response, |delivery| {
            delivery.has_ended = true;
            of_response = delivery.waker.take();
            turn = delivery.turn.take();
        });
        if let Some(turn) = turn {
            state.turns.end(turn);
        }
        let of_connection = match state.is_flushed {
            true => state.waker.take(),
            // The next flush follows.
            false => None,
        };
        drop(state);
        let wakers = of_response.into_iter().chain(of_connection);
        wakers.for_each(Waker::wake);
    }
}

/// The content of a response.
pub(in crate::server::tcp) struct Content {
    inner: Body,
    /// `None` if the outcome is not followed.
    outgoing: Option<Arc<Outgoing>>,
}

impl Content {
    /// `inner`, whose outcome is followed.
    pub(super) fn followed(inner: Body, outgoing: Arc<Outgoing>) -> Self {
        Self {
            inner,
            outgoing: Some(outgoing),
        }
    }

    /// Empty content.
    pub(in crate::server::tcp) fn empty() -> Self {
        Self {
            inner: Body::empty(),
            outgoing: None,
        }
    }

    /// Follows its sending beside others, in frames whose last one is marked as such.
    pub(in crate::server::tcp) fn sending(&self) -> Option<Sending> {
        let outgoing = self.outgoing.as_ref()?;
        if let Some(delivery) = outgoing
            .deliveries
            .lock()
            .responses
            .get_mut(outgoing.response)
        {
            delivery.has_framed_end = true;
        }
        Some(Sending {
            deliveries: outgoing.deliveries.clone(),
            response: outgoing.response,
            number: outgoing.number,
        })
    }

    /// A part without bytes, which marks its end.
    pub(in crate::server::tcp) fn end(&self) -> Part {
        Part {
            bytes: Bytes::new(),
            outgoing: self.outgoing.clone(),
        }
    }

    /// Records that the client does not get it.
    pub(in crate::server::tcp) fn cut(self) {
        if let Some(outgoing) = &self.outgoing {
            let mut state = outgoing.deliveries.lock();
            state.list(outgoing.response, |delivery| delivery.is_cut = true);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(outgoing) = &self.outgoing {
            match &frame {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Bytes::len);
                    let is_end = frame.is_trailers() || self.inner.is_end_stream();
                    outgoing.passed(bytes, is_end);
                }
                Some(Err(_)) => {}
                None => outgoing.passed(0, true),
            }
        }
        Poll::Ready(frame)
    }
}

impl http_body::Body for Content {
    type Data = Part;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Part>, BoxError>>> {
        let frame = ready!(self.poll_next(cx));
        let outgoing = &self.outgoing;
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| Part {
                    bytes,
                    outgoing: outgoing.clone(),
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A response that is sent beside others of its connection.
pub(in crate::server::tcp) struct Sending {
    deliveries: Deliveries,
    response: usize,
    number: u64,
}

impl Sending {
    /// Ready when its content and all parts of it are dropped.
    pub(in crate::server::tcp) fn poll_end(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.deliveries.lock();
        let delivery = state.responses.get_mut(self.response);
        match delivery.filter(|delivery| delivery.number == self.number && !delivery.has_ended) {
            Some(delivery) => {
                delivery.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Whether the connection has taken too little of it for `limit`. With a slow client, responses wait for each other: it is
    /// stuck if it was passed over, so that only its own window can be the reason, or if they all move too little. Others do not
    /// matter if it is `alone`.
    pub(in crate::server::tcp) fn is_stuck(&self, limit: Duration, alone: bool) -> bool {
        self.deliveries.refresh();
        let mut guard = self.deliveries.lock();
        let state = &mut *guard;
        let (turns, min_bytes) = (&state.turns, state.progress.min_bytes());
        self.turn(&mut state.responses).is_some_and(|turn| {
            if alone {
                turn.since.elapsed() >= limit
            } else {
                turn.is_stuck(limit, turns, min_bytes)
            }
        })
    }

    /// The time until it has moved too little for `limit`.
    pub(in crate::server::tcp) fn patience(&self, limit: Duration) -> Duration {
        let mut state = self.deliveries.lock();
        let turn = self.turn(&mut state.responses);
        turn.map_or(limit, |turn| limit.saturating_sub(turn.since.elapsed()))
    }

    fn turn<'a>(&self, responses: &'a mut Slab<Delivery>) -> Option<&'a mut Turn> {
        let delivery = responses.get_mut(self.response);
        delivery
            .filter(|delivery| delivery.number == self.number)
            .and_then(|delivery| delivery.turn.as_mut())
    }
}

/// Content that is written as it is read.
pub(super) struct Streamed(pub(super) Content);

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(self.0.poll_next(cx));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.0
                .outgoing
                .iter()
                .for_each(|outgoing| outgoing.taken(bytes));
        }
        Poll::Ready(frame)
    }
}

/// A part of a response's content, which tracks how much of it was taken.
pub(in crate::server::tcp) struct Part {
    bytes: Bytes,
    outgoing: Option<Arc<Outgoing>>,
}

impl Buf for Part {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, bytes: usize) {
        self.bytes.advance(bytes);
        self.outgoing
            .iter()
            .for_each(|outgoing| outgoing.taken(bytes));
    }
}
