//! The content of a request over HTTP/3.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::RecvStream;
use h3::server::RequestStream;
use http_body::Frame;

use crate::body::BoxError;

/// The content of a request; stops the client's stream when it is dropped.
pub(super) struct RequestBody<S: RecvStream> {
    stream: RequestStream<S, Bytes>,
    end: bool,
}

impl<S: RecvStream> RequestBody<S> {
    pub(super) fn new(stream: RequestStream<S, Bytes>) -> Self {
        Self { stream, end: false }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let data = ready!(self.stream.poll_recv_data(cx));
        let data = data.map(|data| data.map(|mut data| data.copy_to_bytes(data.remaining())));
        self.end = !matches!(data, Ok(Some(_)));
        Poll::Ready(data.map_err(Into::into).transpose())
    }
}

impl<S: RecvStream> http_body::Body for RequestBody<S> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if this.end {
            return Poll::Ready(None);
        }
        this.poll_data(cx)
            .map(|data| data.map(|data| data.map(Frame::data)))
    }
}

impl<S: RecvStream> Drop for RequestBody<S> {
    fn drop(&mut self) {
        // Most requests have no content, and their end has already arrived.
        if self.end {
            return;
        }
        let rest = self.poll_data(&mut Context::from_waker(Waker::noop()));
        if !matches!(rest, Poll::Ready(None)) {
            self.stream.stop_sending(Code::H3_NO_ERROR);
        }
    }
}
