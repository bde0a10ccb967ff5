//! Content of requests that is not read to its end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};

/// Whether the content of a request was dropped before its end, so that the rest of it would precede the next request.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(Arc<AtomicBool>);

impl Unread {
    /// Whether the content was dropped before its end.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// The same content; a drop before its end is recorded here.
    pub(super) fn watch<B: Body>(&self, content: B) -> Watched<B> {
        Watched {
            content,
            has_ended: false,
            unread: self.clone(),
        }
    }
}

/// See [`Unread::watch`].
pub(super) struct Watched<B: Body> {
    content: B,
    has_ended: bool,
    unread: Unread,
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.content).poll_frame(cx));
        this.has_ended = frame.is_none();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

impl<B: Body> Drop for Watched<B> {
    fn drop(&mut self) {
        if !self.has_ended && !self.content.is_end_stream() {
            self.unread.0.store(true, Relaxed);
        }
    }
}
