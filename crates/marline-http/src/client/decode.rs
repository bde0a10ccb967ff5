//! Content codings (RFC 9110, section 8.4) of responses.

use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tower::{ServiceExt, service_fn};
use tower_http::decompression::Decompression;

use super::{ClientError, Download};
use crate::body::{Body, BoxError};
use crate::limits::{FREE_EXPANSION, MAX_EXPANSION};

/// The codings that [`decoded`] knows, for `Accept-Encoding`.
pub(super) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// The content of a response, decoded if it was compressed and that was asked for.
pub struct Decoding<B = Download>(Kind<B>);

enum Kind<B> {
    Plain(B),
    Decoded(Decoded),
}

/// Content that is decoded while it arrives.
struct Decoded {
    body: Body,
    /// Bytes that have arrived.
    encoded: Arc<AtomicU64>,
    /// Bytes after decoding.
    len: u64,
}

/// Decodes the content of `response`, if it has a known coding.
pub(super) async fn decoded<B>(response: Response<B>) -> Response<Decoding<B>>
where
    B: http_body::Body<Data = Bytes, Error = ClientError> + Send + 'static,
{
    if !response.headers().contains_key(CONTENT_ENCODING) || response.body().is_end_stream() {
        return response.map(Decoding::plain);
    }
    let encoded = Arc::<AtomicU64>::default();
    let counter = Arc::clone(&encoded);
    let response = response.map(|content| {
        Body::new(content.map_frame(move |frame| {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            counter.fetch_add(bytes as u64, Relaxed);
            frame
        }))
    });
    let response = std::sync::Mutex::new(Some(response));
    let once = service_fn(move |_: Request<()>| {
        let response = response
            .lock()
            .ok()
            .and_then(|mut response| response.take());
        ready(Ok::<_, Infallible>(
            response.unwrap_or_else(|| Response::new(Body::empty())),
        ))
    });
    let Ok(response) = Decompression::new(once).oneshot(Request::new(())).await;
    response.map(|body| {
        Decoding(Kind::Decoded(Decoded {
            body: Body::new(body),
            encoded,
            len: 0,
        }))
    })
}

impl<B> Decoding<B> {
    /// Content as it is.
    pub(super) fn plain(content: B) -> Self {
        Self(Kind::Plain(content))
    }

    /// The content, if it is not decoded.
    pub(super) fn plain_mut(&mut self) -> Option<&mut B> {
        match &mut self.0 {
            Kind::Plain(content) => Some(content),
            Kind::Decoded(_) => None,
        }
    }

    /// The content, if it is not decoded.
    pub(super) fn into_plain(self) -> Option<B> {
        match self.0 {
            Kind::Plain(content) => Some(content),
            Kind::Decoded(_) => None,
        }
    }
}

impl<B: http_body::Body<Data = Bytes, Error = ClientError> + Unpin> Decoding<B> {
    /// The next bytes; `None` once all have arrived.
    ///
    /// # Errors
    /// As those of the content; it cannot be decoded, or is much larger than what arrived.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let Some(frame) = self.frame().await else {
                return Ok(None);
            };
            // Trailers are ignored.
            if let Ok(chunk) = frame?.into_data() {
                return Ok(Some(chunk));
            }
        }
    }
}

impl<B: http_body::Body<Data = Bytes, Error = ClientError> + Unpin> http_body::Body
    for Decoding<B>
{
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        match &mut self.get_mut().0 {
            Kind::Plain(content) => Pin::new(content).poll_frame(cx),
            Kind::Decoded(decoded) => decoded.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Plain(content) => content.is_end_stream(),
            Kind::Decoded(decoded) => decoded.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Plain(content) => content.size_hint(),
            Kind::Decoded(_) => SizeHint::default(),
        }
    }
}

impl<B> std::fmt::Debug for Decoding<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoding").finish_non_exhaustive()
    }
}

impl Decoded {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                return Poll::Ready(None);
            };
            let frame = frame.map_err(explain)?;
            let Some(chunk) = frame.data_ref() else {
                return Poll::Ready(Some(Ok(frame)));
            };
            self.len += chunk.len() as u64;
            let encoded = self.encoded.load(Relaxed);
            if self.len > FREE_EXPANSION && self.len / MAX_EXPANSION > encoded {
                return Poll::Ready(Some(Err(ClientError::Expansion { encoded })));
            }
            if !chunk.is_empty() {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }
}

/// The error of the connection if it is one, or that of the decoder.
fn explain(error: BoxError) -> ClientError {
    let error = match error.downcast::<ClientError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    match error.downcast::<std::io::Error>() {
        Ok(error) => match error.downcast::<ClientError>() {
            Ok(error) => error,
            Err(error) => ClientError::Encoding {
                cause: error.into(),
            },
        },
        Err(cause) => ClientError::Encoding { cause },
    }
}
