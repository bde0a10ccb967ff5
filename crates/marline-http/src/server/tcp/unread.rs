//! Request content of HTTP/2 that the service did not read.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::limits;

/// The content of a request. What is unread when the service drops it is read and discarded, within limits.
///
/// hyper resets a stream whose content is dropped before the response is sent, and clients take that for an error
/// even where a response follows. Content beyond the limits is refused after the response, with NO_ERROR
/// (RFC 9113 section 8.1).
pub(super) struct DiscardUnread(Option<Incoming>);

impl DiscardUnread {
    pub(super) fn new(content: Incoming) -> Self {
        Self(Some(content))
    }
}

impl http_body::Body for DiscardUnread {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.get_mut().0 {
            Some(content) => Pin::new(content).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}

impl Drop for DiscardUnread {
    fn drop(&mut self) {
        let Some(content) = self.0.take().filter(|content| !content.is_end_stream()) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(timeout(limits::DISCARD_TIMEOUT, discard(content)));
        }
    }
}

async fn discard(mut content: Incoming) {
    let mut left = limits::MAX_DISCARDED_BYTES;
    while let Some(Ok(frame)) = content.frame().await {
        let len = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(len) {
            Some(rest) => left = rest,
            None => break,
        }
    }
}
