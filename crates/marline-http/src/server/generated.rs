//! A site of generated objects of given sizes, for tests, measurements and simulations.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH,
    IF_NONE_MATCH, RANGE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::Full;
use marline::Runtime;
use tower::{Service, ServiceExt};

use super::Site;
use super::files::{ByteRange, Ranges};
use crate::body::{Body, BoxError};
use crate::limits;
use crate::runtime::RuntimeHandle;

/// The content of all objects repeats after this many bytes. It is a prime, so that pieces of usual sizes at
/// a wrong offset have wrong content.
const PERIOD: usize = 65_521;

/// The repeated block.
static BLOCK: LazyLock<Bytes> = LazyLock::new(|| {
    let mut state = 1u32;
    let bytes = (0..PERIOD).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    bytes.collect()
});

/// One object of a [`generated`] site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedObject {
    /// Bytes of content.
    pub size: u64,
    /// Its media type.
    pub content_type: HeaderValue,
    /// The delay from the request's header to the response's.
    pub think: Duration,
    /// The content, of [`size`](Self::size) bytes; `None` for a generated pattern, which takes no memory.
    pub content: Option<Bytes>,
}

impl GeneratedObject {
    /// An object with this content and no delay.
    pub const fn of(content: Bytes, content_type: HeaderValue) -> Self {
        Self {
            size: content.len() as u64,
            content_type,
            think: Duration::ZERO,
            content: Some(content),
        }
    }

    /// Writes the content of the object at `path`, as a server sends it.
    ///
    /// # Errors
    /// `to` cannot be written to.
    pub fn write_content(&self, path: &str, to: &mut impl io::Write) -> io::Result<()> {
        if let Some(content) = &self.content {
            return to.write_all(content);
        }
        let pattern = Content {
            position: start(path),
            left: self.size,
        };
        for chunk in pattern {
            to.write_all(&chunk)?;
        }
        Ok(())
    }

    /// A part of the content, within its size, as a body; `start` is the offset of the object in the pattern.
    fn part(&self, start: usize, first: u64, len: u64) -> Body {
        match &self.content {
            Some(content) => {
                let whole = content.len();
                let from = usize::try_from(first).map_or(whole, |first| first.min(whole));
                let left = whole - from;
                let len = usize::try_from(len).map_or(left, |len| len.min(left));
                Body::new(Full::new(content.slice(from..from + len)))
            }
            None => Body::new(Content {
                position: ((start as u64 + first) % PERIOD as u64) as usize,
                left: len,
            }),
        }
    }
}

/// A service that answers GET and HEAD with `objects`, by path: with ranges and entity tags, equal content
/// every time, and delayed by their think time on the clock of `runtime`; by default, of the tokio runtime in
/// which the caller runs.
///
/// # Errors
/// No runtime is given, and the caller runs in no tokio runtime.
pub fn generated(
    objects: BTreeMap<String, GeneratedObject>,
    runtime: Option<Arc<dyn Runtime>>,
) -> io::Result<Site> {
    let objects = Arc::new(objects);
    Ok(Site::new(Delayed {
        runtime: RuntimeHandle::new(runtime)?,
        objects: Objects(Arc::clone(&objects)),
        answering: Ranges::new(Objects(objects)),
    }))
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// Delays responses.
#[derive(Clone)]
struct Delayed {
    runtime: RuntimeHandle,
    objects: Objects,
    answering: Ranges<Objects>,
}

impl Service<Request<Body>> for Delayed {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.answering.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let object = self.objects.0.get(request.uri().path());
        let think = object.map_or(Duration::ZERO, |object| object.think);
        if think.is_zero() {
            return self.answering.call(request);
        }
        let (runtime, answering) = (self.runtime.clone(), self.answering.clone());
        Box::pin(async move {
            runtime.sleep(think).await;
            answering.oneshot(request).await
        })
    }
}

/// Whole objects and single ranges of them.
#[derive(Clone)]
struct Objects(Arc<BTreeMap<String, GeneratedObject>>);

impl Service<Request<Body>> for Objects {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        ready(Ok(self.answer(&request)))
    }
}

impl Objects {
    fn answer(&self, request: &Request<Body>) -> Response<Body> {
        let path = request.uri().path();
        let Some(object) = self.0.get(path) else {
            return empty(StatusCode::NOT_FOUND);
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
            let allow = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allow);
            return response;
        }
        let start = start(path);
        let tag = HeaderValue::try_from(format!("\"{start:x}-{:x}\"", object.size))
            .expect("digits and quotes are visible ASCII");
        let names_it = |name| names(request.headers(), name, &tag);
        if names_it(IF_MATCH) == Some(false) {
            return empty(StatusCode::PRECONDITION_FAILED);
        }
        if names_it(IF_NONE_MATCH) == Some(true) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().insert(ETAG, tag);
            return response;
        }
        let range = range_of(request, object.size);
        let (first, len) = range.map_or((0, object.size), |range| (range.first, range.len()));
        let body = match *request.method() {
            Method::HEAD => Body::empty(),
            _ => object.part(start, first, len),
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, object.content_type.clone());
        headers.insert(CONTENT_LENGTH, len.into());
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(ETAG, tag);
        if let Some(ByteRange { first, last }) = range {
            let value = HeaderValue::try_from(format!("bytes {first}-{last}/{}", object.size))
                .expect("digits are visible ASCII");
            headers.insert(CONTENT_RANGE, value);
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        response
    }
}

/// The offset in the block at which the content of an object begins: FNV-1a of its path.
fn start(path: &str) -> usize {
    let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash % PERIOD as u64) as usize
}

/// The range that [`Ranges`] requests.
fn range_of(request: &Request<Body>, size: u64) -> Option<ByteRange> {
    let value = request.headers().get(RANGE)?;
    ByteRange::only(value, size)
}

/// Whether the field contains the entity tag (RFC 9110 section 13.1); `None` without the field.
fn names(headers: &HeaderMap, name: http::HeaderName, tag: &HeaderValue) -> Option<bool> {
    let value = headers.get(name)?.as_bytes();
    let tag = tag.as_bytes();
    let named = value == b"*" || value.windows(tag.len()).any(|part| part == tag);
    Some(named)
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let length = HeaderValue::from_static("0");
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

/// A part of an object. Its chunks are views of the block: nothing is copied.
struct Content {
    /// The offset in the block.
    position: usize,
    left: u64,
}

impl Iterator for Content {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let most = (PERIOD - self.position).min(limits::FILE_CHUNK_BYTES);
        let len = usize::try_from(self.left).map_or(most, |left| left.min(most));
        let chunk = BLOCK.slice(self.position..self.position + len);
        self.position = (self.position + len) % PERIOD;
        self.left -= len as u64;
        Some(chunk)
    }
}

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.get_mut().next().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests;
