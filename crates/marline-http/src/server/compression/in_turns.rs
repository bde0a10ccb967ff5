//! Content that others wait for no longer than a part of it takes to compress.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::body::{Body, BoxError};
use crate::limits::COMPRESSED_AT_ONCE;

/// Content that pauses after each [`COMPRESSED_AT_ONCE`]: an encoder that has no output yet reads on as long as there is content,
/// within one step of its task, while nothing else of its thread runs.
pub(super) struct InTurns {
    body: Body,
    /// Bytes since the last pause.
    read: usize,
}

impl InTurns {
    pub(super) const fn new(body: Body) -> Self {
        Self { body, read: 0 }
    }
}

impl http_body::Body for InTurns {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.read >= COMPRESSED_AT_ONCE {
            self.read = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.read += frame.data_ref().map_or(0, Bytes::len);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
