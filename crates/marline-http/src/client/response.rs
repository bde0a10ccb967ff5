//! The content of a response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Method;
use http::response::Parts;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use marline_h3::StreamEvent;

use super::ClientError;
use super::connection::Http3Content;
use super::stall::{Activity, Watch};
use crate::body::{BoxError, with_source};
use crate::content::{content_length, is_bodiless};

/// The source of the content.
pub(super) enum Content {
    Hyper(Incoming),
    Http3(Http3Content),
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
        let expected = match is_bodiless(method, parts.status) {
            true => Some(0),
            false => content_length(&parts.headers),
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

    /// The content must have `bytes` bytes, as another header field states.
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
        loop {
            let Some(frame) = poll_fn(|cx| self.poll_part(cx)).await? else {
                return Ok(None);
            };
            // Trailers are ignored.
            if let Ok(chunk) = frame.into_data() {
                return Ok(Some(chunk));
            }
        }
    }

    /// The next bytes, or the trailers; `None` once all have arrived.
    fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame<Bytes>>, ClientError>> {
        if self.end {
            return Poll::Ready(Ok(None));
        }
        let part = ready!(self.poll_content(cx));
        Poll::Ready(match part {
            Ok(Some(part)) => {
                let bytes = part.data_ref().map_or(0, Bytes::len);
                self.received += bytes as u64;
                self.activity.on_content(bytes);
                match self.expected {
                    Some(expected) if self.received > expected => {
                        Err(self.broken("more bytes arrived than were announced".into()))
                    }
                    _ => Ok(Some(part)),
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
        })
    }

    /// The next bytes, unless there is no progress for too long.
    fn poll_content(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame<Bytes>>, BoxError>> {
        match self.content.poll_part(cx) {
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

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        let this = self.get_mut();
        let part = ready!(this.poll_part(cx));
        // It fails once.
        this.end |= part.is_err();
        Poll::Ready(part.transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.end || self.expected == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        match self.expected {
            Some(expected) => SizeHint::with_exact(expected.saturating_sub(self.received)),
            None => SizeHint::default(),
        }
    }
}

impl Content {
    /// The next bytes, which are never empty, or trailers.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, BoxError>> {
        loop {
            let part = match self {
                Self::Hyper(body) => match ready!(Pin::new(body).poll_frame(cx)) {
                    None => return Poll::Ready(Ok(None)),
                    Some(frame) => frame.map_err(with_source)?,
                },
                Self::Http3(content) => match ready!(content.poll_next(cx))? {
                    None => return Poll::Ready(Ok(None)),
                    Some(StreamEvent::Data(data)) => Frame::data(data),
                    Some(StreamEvent::Trailers(trailers)) => Frame::trailers(*trailers),
                    Some(_) => continue,
                },
            };
            if part.data_ref().is_none_or(|data| !data.is_empty()) {
                return Poll::Ready(Ok(Some(part)));
            }
        }
    }
}
