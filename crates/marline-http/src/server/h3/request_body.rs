//! The content of a request over HTTP/3.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::Frame;
use marline_h3::{ErrorCode, StreamEvent};

use crate::body::BoxError;
use crate::http3::{QuicTransport, Receiver};
use crate::limits;
use crate::server::received::OpenContent;

/// The content of a request; stops the client's stream when it is dropped.
pub(super) struct RequestBody<C: QuicTransport> {
    receiver: Receiver<C>,
    /// `None` once it has ended.
    open: Option<OpenContent>,
    /// Whether it has ended, or failed.
    is_ended: bool,
}

impl<C: QuicTransport> RequestBody<C> {
    pub(super) fn new(receiver: Receiver<C>, open: OpenContent) -> Self {
        Self {
            receiver,
            open: Some(open),
            is_ended: false,
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
            match ready!(this.receiver.poll_next(cx)) {
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
            match self.receiver.poll_next(cx) {
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
