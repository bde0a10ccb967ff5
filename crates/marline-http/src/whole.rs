//! Content whose length was announced.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use crate::body::{Body, BoxError};

/// A message of HTTP/2 or 3 has more content than it announced, and is malformed (RFC 9113, section 8.1.1; RFC 9114, section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more content than the content length")]
struct TooLong;

/// Content of an announced length, whose last part is passed on once its message has ended. Before that, it is unknown
/// whether more follows, and a recipient over HTTP/1.1 takes content of that length as complete.
pub(crate) struct Whole {
    body: Body,
    left: u64,
    last: Option<Frame<Bytes>>,
    trailers: Option<Frame<Bytes>>,
    is_over: bool,
}

impl Whole {
    /// `body`, which has `length` bytes.
    pub(crate) fn new(body: Body, length: u64) -> Self {
        Self {
            body,
            left: length,
            last: None,
            trailers: None,
            is_over: false,
        }
    }

    /// Waits for the end of content that has no bytes: without a last part, nothing else does.
    ///
    /// # Errors
    /// It has content, or its message is incomplete.
    pub(crate) async fn confirmed(mut self) -> Result<Self, BoxError> {
        if self.left == 0 && !self.body.is_end_stream() {
            poll_fn(|cx| self.poll_end(cx)).await?;
        }
        Ok(self)
    }

    /// Reads to the end, which must contain no more content.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        while !self.is_over {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) if frame.is_trailers() => {
                    self.trailers = Some(frame);
                    self.is_over = true;
                }
                Some(Ok(frame)) => {
                    if frame.data_ref().is_some_and(|data| !data.is_empty()) {
                        return Poll::Ready(Err(self.fail(TooLong.into())));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err(self.fail(error))),
                None => self.is_over = true,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn fail(&mut self, error: BoxError) -> BoxError {
        self.is_over = true;
        self.last = None;
        error
    }
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        while this.left > 0 && !this.is_over {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                other => {
                    this.is_over = true;
                    return Poll::Ready(other);
                }
            };
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            let Some(left) = this.left.checked_sub(bytes) else {
                return Poll::Ready(Some(Err(this.fail(TooLong.into()))));
            };
            this.left = left;
            if left > 0 {
                return Poll::Ready(Some(Ok(frame)));
            }
            this.last = Some(frame);
        }
        if let Err(error) = ready!(this.poll_end(cx)) {
            return Poll::Ready(Some(Err(error)));
        }
        let rest = this.last.take().or_else(|| this.trailers.take());
        Poll::Ready(rest.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        let is_read = self.is_over || self.body.is_end_stream();
        is_read && self.last.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let last = self.last.as_ref().and_then(Frame::data_ref);
        SizeHint::with_exact(self.left + last.map_or(0, |last| last.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};
    use http::HeaderMap;
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    fn body(frames: Vec<Frame<Bytes>>) -> Body {
        let frames = frames.into_iter().map(Ok::<_, BoxError>);
        Body::new(StreamBody::new(stream::iter(frames)))
    }

    fn data(bytes: &'static [u8]) -> Frame<Bytes> {
        Frame::data(Bytes::from_static(bytes))
    }

    /// The part that is passed on before the content ends or fails, and whether it ends.
    fn passed_on(length: u64, frames: Vec<Frame<Bytes>>) -> (Vec<u8>, bool) {
        let mut whole = Whole::new(body(frames), length);
        let mut passed = Vec::new();
        loop {
            match whole.frame().now_or_never().expect("nothing waits") {
                Some(Ok(frame)) => passed.extend(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => return (passed, false),
                None => return (passed, true),
            }
        }
    }

    #[test]
    fn content_that_is_too_long_never_looks_whole() {
        let complete = vec![data(b"hel"), data(b""), data(b"lo"), data(b"")];
        assert_eq!(passed_on(5, complete), (b"hello".to_vec(), true));
        let at_once = vec![data(b"hello!")];
        assert_eq!(passed_on(5, at_once), (Vec::new(), false));
        let later = vec![data(b"hel"), data(b"lo"), data(b"!")];
        assert_eq!(passed_on(5, later), (b"hel".to_vec(), false));
    }

    #[test]
    fn trailers_follow_the_last_part() {
        let frames = || vec![data(b"hello"), Frame::trailers(HeaderMap::new())];
        let mut whole = Whole::new(body(frames()), 5);
        let frames: Vec<_> = std::iter::from_fn(|| whole.frame().now_or_never()?).collect();
        let kinds: Vec<_> = frames.iter().flatten().map(Frame::is_data).collect();
        assert_eq!(kinds, [true, false]);
    }

    #[tokio::test]
    async fn content_without_bytes_is_confirmed_by_its_end() {
        for (frames, is_confirmed) in [
            (vec![], true),
            (vec![data(b"")], true),
            (vec![Frame::trailers(HeaderMap::new())], true),
            (vec![data(b"x")], false),
        ] {
            let confirmed = Whole::new(body(frames), 0).confirmed().await;
            assert_eq!(confirmed.is_ok(), is_confirmed);
        }
    }
}
