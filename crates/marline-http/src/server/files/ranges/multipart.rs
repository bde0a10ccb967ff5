//! `multipart/byteranges` (RFC 9110 section 14.6): several ranges in one response.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http_body::Frame;

use super::spec::ByteRange;
use super::{
    ACCEPT_RANGES, Body, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue,
    Request, Response, Service, ServiceExt, StatusCode, one_range,
};
use crate::body::BoxError;

/// A 206 whose parts are read from `service` one after another.
pub(super) fn response<S>(
    service: S,
    parts: &Parts,
    head: &HeaderMap,
    ranges: &[ByteRange],
    size: u64,
) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Unpin
        + 'static,
    S::Future: Send,
{
    let boundary = boundary();
    let content_type = head
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("application/octet-stream");
    let end = Bytes::from(format!("\r\n--{boundary}--\r\n"));
    let mut len = end.len() as u64;
    let queue: VecDeque<_> = ranges
        .iter()
        .map(|range| {
            let ByteRange { first, last } = range;
            let title = Bytes::from(format!(
                "\r\n--{boundary}\r\nContent-Type: {content_type}\r\n\
                 Content-Range: bytes {first}-{last}/{size}\r\n\r\n"
            ));
            len += title.len() as u64 + range.len();
            Part {
                title,
                request: one_range(parts, *range, head.get(ETAG)),
            }
        })
        .collect();

    let body = Multipart {
        service,
        queue,
        end: Some(end),
        stage: Stage::Between,
    };
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    *response.headers_mut() = head.clone();
    let headers = response.headers_mut();
    headers.remove(CONTENT_RANGE);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, len.into());
    if let Ok(value) = HeaderValue::try_from(format!("multipart/byteranges; boundary={boundary}")) {
        headers.insert(CONTENT_TYPE, value);
    }
    response
}

/// A boundary of 128 random bits, which the content cannot contain on purpose.
fn boundary() -> String {
    let [high, low] = [0, 1].map(|salt: u8| RandomState::new().hash_one(salt));
    format!("{high:016x}{low:016x}")
}

struct Part {
    title: Bytes,
    request: Request<Body>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

enum Stage {
    Between,
    Asking(Answer),
    Copying(Body),
}

struct Multipart<S> {
    service: S,
    queue: VecDeque<Part>,
    end: Option<Bytes>,
    stage: Stage,
}

impl<S> http_body::Body for Multipart<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Unpin
        + 'static,
    S::Future: Send,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            match &mut this.stage {
                Stage::Between => {
                    let Some(part) = this.queue.pop_front() else {
                        return Poll::Ready(this.end.take().map(|end| Ok(Frame::data(end))));
                    };
                    let service = this.service.clone();
                    this.stage = Stage::Asking(Box::pin(service.oneshot(part.request)));
                    return Poll::Ready(Some(Ok(Frame::data(part.title))));
                }
                Stage::Asking(answer) => {
                    let Ok(response) = ready!(answer.as_mut().poll(cx));
                    if response.status() != StatusCode::PARTIAL_CONTENT {
                        let error = io::Error::other("the file changed while it was being sent");
                        return Poll::Ready(Some(Err(error.into())));
                    }
                    this.stage = Stage::Copying(response.into_body());
                }
                Stage::Copying(body) => {
                    match ready!(http_body::Body::poll_frame(Pin::new(body), cx)) {
                        Some(frame) => return Poll::Ready(Some(frame)),
                        None => this.stage = Stage::Between,
                    }
                }
            }
        }
    }
}
