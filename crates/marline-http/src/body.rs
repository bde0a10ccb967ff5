//! The body type of requests and responses.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

/// Any error of a body's source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error with its cause, which hyper's message does not contain.
pub(crate) fn with_source(error: hyper::Error) -> BoxError {
    with_shared_source(Arc::new(error))
}

/// The same for an error that others have, too.
pub(crate) fn with_shared_source(error: Arc<hyper::Error>) -> BoxError {
    WithSource(error).into()
}

#[derive(Debug)]
struct WithSource(Arc<hyper::Error>);

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
pub struct Body(Content);

/// Most messages have no content, or have it in memory: these need no allocation of their own.
enum Content {
    Full(Bytes),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// Wraps any body. One of this type stays as it is.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut body = Some(body);
        let any: &mut dyn Any = &mut body;
        if let Some(same) = any.downcast_mut::<Option<Self>>().and_then(Option::take) {
            return same;
        }
        match body {
            Some(body) => Self(Content::Stream(body.map_err(Into::into).boxed_unsync())),
            None => Self::empty(),
        }
    }

    /// No content.
    pub fn empty() -> Self {
        Self(Content::Full(Bytes::new()))
    }

    /// Content that is already in memory.
    pub fn full(content: impl Into<Bytes>) -> Self {
        Self(Content::Full(content.into()))
    }

    /// The rest of the content if it is in memory.
    pub(crate) fn in_memory(&self) -> Option<&Bytes> {
        match &self.0 {
            Content::Full(rest) => Some(rest),
            Content::Stream(_) => None,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Content::Full(rest) if rest.is_empty() => Poll::Ready(None),
            Content::Full(rest) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(rest))))),
            Content::Stream(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Full(rest) => rest.is_empty(),
            Content::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full(rest) => SizeHint::with_exact(rest.len() as u64),
            Content::Stream(stream) => stream.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
