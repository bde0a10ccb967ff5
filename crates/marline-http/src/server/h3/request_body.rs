//! The content of a request over HTTP/3.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use marline_h3::{ErrorCode, StreamEvent};

use crate::body::BoxError;
use crate::http3::{QuicTransport, Receiver, RequestError};
use crate::limits;
use crate::server::received::{OpenContent, OpenContents};

/// The content of a request; stops the client's stream when it is dropped.
pub(super) struct RequestBody<C: QuicTransport> {
    receiver: Receiver<C>,
    /// `None` once it has ended.
    open: Option<OpenContent>,
    /// The part that was read to find out whether there is any.
    first: Option<Next>,
    /// Whether it has ended, or failed.
    is_ended: bool,
}

/// The next part of a message, `None` when it is complete.
type Next = Result<Option<StreamEvent>, RequestError>;

impl<C: QuicTransport> RequestBody<C> {
    /// The content that `receiver` receives after a header, one of `contents`. Most requests have none, and their end has arrived with
    /// the header: nothing is kept for them.
    pub(super) fn new(mut receiver: Receiver<C>, contents: &OpenContents) -> Self {
        let cx = &mut Context::from_waker(Waker::noop());
        let first = match receiver.poll_next(cx) {
            Poll::Ready(first) => Some(first),
            Poll::Pending => None,
        };
        let is_ended = matches!(first, Some(Ok(None)));
        Self {
            receiver,
            open: (!is_ended).then(|| contents.open()),
            first: first.filter(|_| !is_ended),
            is_ended,
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        match self.first.take() {
            Some(first) => Poll::Ready(first),
            None => self.receiver.poll_next(cx),
        }
    }
}

impl<C: QuicTransport> http_body::Body for RequestBody<C> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        while !this.is_ended {
            match ready!(this.poll_next(cx)) {
                Ok(Some(StreamEvent::Data(data))) => {
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Ok(Some(StreamEvent::Trailers(trailers))) => {
                    return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
                }
                // No other parts follow a header.
                Ok(Some(_)) => {}
                Ok(None) => this.is_ended = true,
                Err(error) => {
                    this.is_ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }
        this.open = None;
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended
    }

    fn size_hint(&self) -> SizeHint {
        match self.is_ended {
            true => SizeHint::with_exact(0),
            false => SizeHint::default(),
        }
    }
}

impl<C: QuicTransport> Drop for RequestBody<C> {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        // Most requests have no content, and their end has already arrived. What has arrived of others may show that they are malformed.
        let cx = &mut Context::from_waker(Waker::noop());
        let mut left = limits::MAX_DISCARDED_BYTES;
        loop {
            match self.poll_next(cx) {
                Poll::Ready(Ok(Some(StreamEvent::Data(data)))) if data.len() <= left => {
                    left -= data.len();
                }
                Poll::Ready(Ok(Some(StreamEvent::Trailers(_)))) => {}
                Poll::Ready(Ok(None) | Err(_)) => return,
                _ => return self.receiver.stop(ErrorCode::NO_ERROR),
            }
        }
    }
}
