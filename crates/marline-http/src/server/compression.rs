//! Compression of responses as clients accept it (RFC 9110, section 8.4).
//!
//! tower-http's `CompressionLayer` chooses the coding and applies it. Here is which responses are compressed, what that changes in
//! their validators, and the cache of what was compressed.

mod cache;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderValue, VARY,
};
use http::{Extensions, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, ServiceExt, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::Predicate;

use self::cache::{Cache, Key};
use super::Site;
use crate::body::{Body, BoxError};
use crate::content::content_length;
use crate::limits::{COMPRESSIONS, MAX_COMPRESSED_ENTRY, MIN_COMPRESSED_BYTES};

/// Answers as `site` does, with text compressed (Zstandard, Brotli or gzip) for clients that accept it.
///
/// Compressed are complete responses (200) of a type that is text, of at least 1 KiB or of unknown length, without a content
/// coding and without `no-transform`. Content with a strong entity tag, which is that of files, is kept compressed in memory. Their
/// entity tags become weak ones. Content that repeats input of an attacker beside a secret must not be compressed (BREACH): for
/// an application, it is a choice.
pub fn compressed(site: Site) -> Site {
    let permits = Arc::new(Semaphore::new(COMPRESSIONS));
    let cache = Arc::new(Cache::default());
    let candidates = site.map_response(move |mut response: Response<Body>| {
        if is_text(&response) {
            vary(response.headers_mut());
            if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
                response
                    .extensions_mut()
                    .insert(Candidate(Arc::new(permit)));
            }
        }
        response
    });
    let coded = CompressionLayer::new()
        .compress_when(IsCandidate)
        .layer(candidates);
    Site::new(service_fn(move |request: Request<Body>| {
        let (coded, cache) = (coded.clone(), Arc::clone(&cache));
        async move {
            let is_head = request.method() == Method::HEAD;
            let target = request.uri().path_and_query().cloned();
            let Ok(response) = coded.oneshot(request).await;
            let (mut parts, body) = response.into_parts();
            let candidate = parts.extensions.remove::<Candidate>();
            let coding = parts.headers.get(CONTENT_ENCODING).cloned();
            let (Some(Candidate(permit)), Some(coding)) = (candidate, coding) else {
                return Ok::<_, Infallible>(Response::from_parts(parts, Body::new(body)));
            };
            let tag = parts.headers.get(ETAG).cloned();
            weaken_tag(&mut parts.headers);
            if is_head {
                return Ok(Response::from_parts(parts, Body::empty()));
            }
            let key = target.zip(tag.filter(is_strong)).map(|(target, tag)| Key {
                target,
                tag,
                coding,
            });
            let body = match key {
                Some(key) => match cache.get(&key) {
                    Some(content) => {
                        parts.headers.insert(CONTENT_LENGTH, content.len().into());
                        Body::full(content)
                    }
                    None => Body::new(Compressed::kept(Body::new(body), permit, cache, key)),
                },
                None => Body::new(Compressed::new(Body::new(body), permit)),
            };
            Ok(Response::from_parts(parts, body))
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
