//! Compression of responses as clients accept it (RFC 9110, section 8.4).
//!
//! tower-http's `CompressionLayer` chooses the coding and applies it. Here is which responses are compressed, what that changes in
//! their validators, and the cache of what was compressed.

mod cache;
mod in_turns;

use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderValue, VARY,
};
use http::uri::PathAndQuery;
use http::{Extensions, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, ServiceExt, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::Predicate;

use self::cache::{Cache, Key};
use self::in_turns::InTurns;
use super::Site;
use crate::body::{Body, BoxError};
use crate::content::content_length;
use crate::limits::{COMPRESSIONS, MAX_COMPRESSED_ENTRY, MIN_COMPRESSED_BYTES};

/// Compresses text (Zstandard, Brotli or gzip) for clients that accept it. Clones share one limit and one cache.
///
/// Compressed are complete responses (200) of a type that is text, of at least 1 KiB or of unknown length, without a content
/// coding and without `no-transform`. Content with a strong entity tag, which is that of files, is kept compressed in memory. Their
/// entity tags become weak ones. Content that repeats input of an attacker beside a secret must not be compressed (BREACH): for
/// an application, it is a choice.
#[derive(Clone)]
pub struct Compression {
    permits: Arc<Semaphore>,
    cache: Arc<Cache>,
}

/// The parts of a request on which the compression of its response depends.
pub struct Acceptable {
    is_head: bool,
    target: Option<PathAndQuery>,
    /// The values of `Accept-Encoding`.
    codings: Vec<HeaderValue>,
}

impl Acceptable {
    /// That of `request`.
    pub fn to<B>(request: &Request<B>) -> Self {
        let codings: Vec<_> = request.headers().get_all(ACCEPT_ENCODING).iter().collect();
        Self {
            is_head: request.method() == Method::HEAD,
            // Without codings, it does not matter.
            target: request
                .uri()
                .path_and_query()
                .filter(|_| !codings.is_empty())
                .cloned(),
            codings: codings.into_iter().cloned().collect(),
        }
    }

    /// Whether the client names codings without weights, so that it does not exclude that there is none.
    fn is_unweighted(&self) -> bool {
        self.codings
            .iter()
            .all(|value| !value.as_bytes().contains(&b';'))
    }
}

impl Compression {
    /// One with an empty cache.
    pub fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(COMPRESSIONS)),
            cache: Arc::default(),
        }
    }

    /// `response`, compressed if it can be, and if that is `acceptable`.
    pub async fn apply(
        &self,
        acceptable: Acceptable,
        mut response: Response<Body>,
    ) -> Response<Body> {
        let is_text = is_text(&response);
        if is_text {
            vary(response.headers_mut());
        }
        if acceptable.codings.is_empty() || (!is_text && acceptable.is_unweighted()) {
            return response;
        }
        if is_text && let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            let candidate = Candidate(Arc::new(permit));
            response.extensions_mut().insert(candidate);
            response = response.map(|body| Body::new(InTurns::new(body)));
        }
        // A service is what it takes.
        let mut request = Request::new(());
        for coding in &acceptable.codings {
            request
                .headers_mut()
                .append(ACCEPT_ENCODING, coding.clone());
        }
        let mut response = Some(response);
        let coded = CompressionLayer::new()
            .compress_when(IsCandidate)
            .layer(service_fn(|_: Request<()>| {
                // It is called once.
                let response = response.take();
                ready(Ok::<_, Infallible>(
                    response.unwrap_or_else(|| Response::new(Body::empty())),
                ))
            }));
        let Ok(response) = coded.oneshot(request).await;
        self.complete(acceptable, response)
    }

    /// Completes a response that was compressed, or was not.
    fn complete<B>(&self, acceptable: Acceptable, response: Response<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = response.into_parts();
        let candidate = parts.extensions.remove::<Candidate>();
        let coding = parts.headers.get(CONTENT_ENCODING).cloned();
        let (Some(Candidate(permit)), Some(coding)) = (candidate, coding) else {
            return Response::from_parts(parts, Body::new(body));
        };
        let tag = parts.headers.get(ETAG).cloned();
        weaken_tag(&mut parts.headers);
        if acceptable.is_head {
            return Response::from_parts(parts, Body::empty());
        }
        let key = acceptable.target.zip(tag.filter(is_strong));
        let key = key.map(|(target, tag)| Key {
            target,
            tag,
            coding,
        });
        let body = match key {
            Some(key) => match self.cache.get(&key) {
                Some(content) => {
                    parts.headers.insert(CONTENT_LENGTH, content.len().into());
                    Body::full(content)
                }
                None => {
                    let cache = Arc::clone(&self.cache);
                    Body::new(Compressed::kept(Body::new(body), permit, cache, key))
                }
            },
            None => Body::new(Compressed::new(Body::new(body), permit)),
        };
        Response::from_parts(parts, body)
    }
}

impl fmt::Debug for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compression").finish_non_exhaustive()
    }
}

impl Default for Compression {
    fn default() -> Self {
        Self::new()
    }
}

/// Answers as `site` does, with [`Compression`].
pub fn compressed(site: Site) -> Site {
    let compression = Compression::new();
    Site::new(service_fn(move |request: Request<Body>| {
        let (site, compression) = (site.clone(), compression.clone());
        async move {
            let acceptable = Acceptable::to(&request);
            let response = site.oneshot(request).await?;
            Ok(compression.apply(acceptable, response).await)
        }
    }))
}

/// A response that may be compressed, with the right to do so.
#[derive(Clone)]
struct Candidate(Arc<OwnedSemaphorePermit>);

/// Compresses responses with a [`Candidate`].
#[derive(Clone, Copy)]
struct IsCandidate;

impl Predicate for IsCandidate {
    fn should_compress<B>(&self, response: &Response<B>) -> bool
    where
        B: http_body::Body,
    {
        is_candidate(response.extensions())
    }
}

fn is_candidate(extensions: &Extensions) -> bool {
    extensions.get::<Candidate>().is_some()
}

/// Whether a response has content that gets shorter by compression, and may be changed.
fn is_text(response: &Response<Body>) -> bool {
    let headers = response.headers();
    let no_transform = headers.get_all(CACHE_CONTROL).iter().any(|value| {
        value
            .as_bytes()
            .split(|&byte| byte == b',')
            .any(|part| part.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
    });
    response.status() == StatusCode::OK
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !no_transform
        && content_length(headers).is_none_or(|length| length >= MIN_COMPRESSED_BYTES)
        && headers.get(CONTENT_TYPE).is_some_and(is_text_type)
}

/// Types that are text, and those that compress as text does. Events are sent one by one, and wait for nothing.
fn is_text_type(value: &HeaderValue) -> bool {
    let Ok(value) = value.to_str() else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    match essence.as_str() {
        "text/event-stream" => false,
        "application/json"
        | "application/javascript"
        | "application/xml"
        | "application/wasm"
        | "application/yaml"
        | "application/toml"
        | "application/vnd.apple.mpegurl"
        | "application/x-ndjson"
        | "image/bmp"
        | "image/x-icon"
        | "image/vnd.microsoft.icon"
        | "font/ttf"
        | "font/otf"
        | "application/vnd.ms-fontobject" => true,
        _ => {
            essence.starts_with("text/") || essence.ends_with("+json") || essence.ends_with("+xml")
        }
    }
}

/// Adds `Accept-Encoding` to `Vary`, unless it is there.
fn vary(headers: &mut HeaderMap) {
    let is_there = headers.get_all(VARY).iter().any(|value| {
        let mut names = value.as_bytes().split(|&byte| byte == b',');
        names.any(|name| {
            let name = name.trim_ascii();
            name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding")
        })
    });
    if !is_there {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

fn is_strong(tag: &HeaderValue) -> bool {
    tag.as_bytes().starts_with(b"\"")
}

/// The entity tag names content that is not byte for byte the same any more (RFC 9110, section 8.8.3.3).
fn weaken_tag(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(ETAG).filter(|tag| is_strong(tag)) else {
        return;
    };
    if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
        headers.insert(ETAG, weak);
    }
}

/// Content while it is compressed.
struct Compressed {
    body: Body,
    _permit: Arc<OwnedSemaphorePermit>,
    kept: Option<Kept>,
}

/// The compressed bytes so far of content that will be kept.
struct Kept {
    cache: Arc<Cache>,
    key: Key,
    content: BytesMut,
}

impl Compressed {
    fn new(body: Body, permit: Arc<OwnedSemaphorePermit>) -> Self {
        Self {
            body,
            _permit: permit,
            kept: None,
        }
    }

    /// Puts the whole content into `cache` when it is complete.
    fn kept(body: Body, permit: Arc<OwnedSemaphorePermit>, cache: Arc<Cache>, key: Key) -> Self {
        let content = BytesMut::new();
        Self {
            kept: Some(Kept {
                cache,
                key,
                content,
            }),
            ..Self::new(body, permit)
        }
    }
}

impl http_body::Body for Compressed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let data = frame.data_ref();
                self.kept = self.kept.take().zip(data).and_then(|(mut kept, data)| {
                    kept.content.extend_from_slice(data);
                    (kept.content.len() <= MAX_COMPRESSED_ENTRY).then_some(kept)
                });
            }
            Some(Err(_)) => self.kept = None,
            None => {
                if let Some(kept) = self.kept.take() {
                    kept.cache.insert(kept.key, kept.content.freeze());
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // The end completes what is kept.
        self.kept.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
