//! Content codings (RFC 9110, section 8.4) of responses.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use tower::{ServiceExt, service_fn};
use tower_http::decompression::Decompression;

use super::{ClientError, Download};
use crate::body::{Body, BoxError};
use crate::limits::{FREE_EXPANSION, MAX_EXPANSION};

/// The codings that [`decoded`] knows, for `Accept-Encoding`.
pub(super) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// The content of a response, decoded if that was asked for.
pub(super) enum Incoming {
    Plain(Download),
    Decoded(Decoded),
}

/// Content that is decoded while it arrives.
pub(super) struct Decoded {
    body: Body,
    /// Bytes that have arrived.
    encoded: Arc<AtomicU64>,
    /// Bytes after decoding.
    len: u64,
}

/// Decodes the content of `response`, if it has a known coding.
pub(super) async fn decoded(response: Response<Download>) -> Response<Incoming> {
    if !response.headers().contains_key(CONTENT_ENCODING) || response.body().is_end_stream() {
        return response.map(Incoming::Plain);
    }
    let encoded = Arc::<AtomicU64>::default();
    let counter = Arc::clone(&encoded);
    let response = response.map(|download| {
        Body::new(download.map_frame(move |frame| {
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
        Incoming::Decoded(Decoded {
            body: Body::new(body),
            encoded,
            len: 0,
        })
    })
}

impl Incoming {
    /// The length of the content, if it is known.
    pub(super) fn expected(&self) -> Option<u64> {
        match self {
            Self::Plain(download) => download.expected(),
            Self::Decoded(_) => None,
        }
    }

    /// The next bytes; `None` once all have arrived.
    ///
    /// # Errors
    /// As [`Download::chunk`]; the content cannot be decoded, or is much larger than what arrived.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        match self {
            Self::Plain(download) => download.chunk().await,
            Self::Decoded(decoded) => decoded.chunk().await,
        }
    }
}

impl Decoded {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            let Ok(chunk) = frame.map_err(explain)?.into_data() else {
                continue;
            };
            self.len += chunk.len() as u64;
            let encoded = self.encoded.load(Relaxed);
            if self.len > FREE_EXPANSION && self.len / MAX_EXPANSION > encoded {
                return Err(ClientError::Expansion { encoded });
            }
            if !chunk.is_empty() {
                return Ok(Some(chunk));
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
