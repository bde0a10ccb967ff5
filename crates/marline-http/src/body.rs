//! The body type of requests and responses.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

/// Any error of a body's source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error with its cause, which hyper's message does not contain.
pub(crate) fn with_source(error: hyper::Error) -> BoxError {
    WithSource(error).into()
}

#[derive(Debug)]
struct WithSource(hyper::Error);

impl fmt::Display for WithSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(source) => write!(f, "{}: {source}", self.0),
            None => self.0.fmt(f),
        }
    }
}

impl Error for WithSource {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The content of a request or a response, as a stream of chunks.
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

impl Body {
    /// Wraps any body.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(body.map_err(Into::into).boxed_unsync())
    }

    /// No content.
    pub fn empty() -> Self {
        Self::new(Empty::new())
    }

    /// Content that is already in memory.
    pub fn full(content: impl Into<Bytes>) -> Self {
        Self::new(Full::new(content.into()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
