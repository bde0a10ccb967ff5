//! The content of a response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http::{Method, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use marline_h3::StreamEvent;

use super::ClientError;
use super::stall::{Activity, Watch};
use crate::body::{BoxError, with_source};
use crate::http3::Receiver;

/// The source of the content.
pub(super) enum Content {
    Hyper(Incoming),
    Http3(Receiver<marline::Connection>),
}

/// The content of one response, while it arrives.
pub struct Download {
    content: Content,
    expected: Option<u64>,
    received: u64,
    activity: Arc<Activity>,
    watch: Watch,
    end: bool,
}

impl Download {
    pub(super) fn new(
        content: Content,
        method: &Method,
        parts: &Parts,
        activity: &Arc<Activity>,
    ) -> Self {
        let bodiless = method == Method::HEAD
            || parts.status == StatusCode::NO_CONTENT
            || parts.status == StatusCode::NOT_MODIFIED;
        let expected = if bodiless {
            Some(0)
        } else {
            parts
                .headers
                .get(CONTENT_LENGTH)
                .and_then(|length| length.to_str().ok()?.parse().ok())
        };
        Self {
            content,
            expected,
            received: 0,
            activity: Arc::clone(activity),
            watch: Watch::new(activity),
            end: false,
        }
    }

    /// The length that the response announced.
    pub fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// The content must have `bytes` bytes, as another header field says.
    pub(super) fn expect(&mut self, bytes: u64) -> Result<(), ClientError> {
        match self.expected.replace(bytes) {
            Some(announced) if announced != bytes => Err(ClientError::WrongRange(format!(
                "its content has {announced} bytes, its range {bytes}"
            ))),
            _ => Ok(()),
        }
    }

    /// Bytes that have arrived.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The next bytes; `None` once all have arrived.
    ///
    /// # Errors
    /// [`ClientError::Truncated`]: more or fewer bytes arrived than announced, the response failed, or nothing arrived on
    /// its connection for [too long](super::ClientConfig::stall_timeout).
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        if self.end {
            return Ok(None);
        }
        match poll_fn(|cx| self.poll_content(cx)).await {
            Ok(Some(chunk)) => {
                self.received += chunk.len() as u64;
                self.activity.on_content(chunk.len());
                match self.expected {
                    Some(expected) if self.received > expected => {
                        Err(self.broken("more bytes arrived than were announced".into()))
                    }
                    _ => Ok(Some(chunk)),
                }
            }
            Ok(None) => match self.expected {
                Some(expected) if self.received < expected => {
                    Err(self.broken("the server ended it early".into()))
                }
                _ => {
                    self.end = true;
                    Ok(None)
                }
            },
            Err(cause) => Err(self.broken(cause)),
        }
    }

    /// The next bytes, unless there is no progress for too long.
    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BoxError>> {
        match self.content.poll_chunk(cx) {
            Poll::Ready(chunk) => Poll::Ready(chunk),
            Poll::Pending => self.watch.poll(cx).map(|stalled| Err(stalled.into())),
        }
    }

    fn broken(&self, cause: BoxError) -> ClientError {
        ClientError::Truncated {
            received: self.received,
            expected: self.expected,
            cause,
        }
    }
}

impl std::fmt::Debug for Download {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Download")
            .field("expected", &self.expected)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

impl Content {
    /// Chunks are never empty.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BoxError>> {
        loop {
            let chunk = match self {
                Self::Hyper(body) => match ready!(Pin::new(body).poll_frame(cx)) {
                    None => return Poll::Ready(Ok(None)),
                    Some(frame) => match frame.map_err(with_source)?.into_data() {
                        Ok(data) => data,
                        // Trailers.
                        Err(_) => continue,
                    },
                },
                Self::Http3(receiver) => match ready!(receiver.poll_next(cx))? {
                    None => return Poll::Ready(Ok(None)),
                    Some(StreamEvent::Data(data)) => data,
                    // Trailers.
                    Some(_) => continue,
                },
            };
            if !chunk.is_empty() {
                return Poll::Ready(Ok(Some(chunk)));
            }
        }
    }
}
