//! Compression of responses as clients accept it (RFC 9110, section 8.4).
//!
//! tower-http's `CompressionLayer` chooses the coding and applies it. Here is which responses are compressed, what that changes in
//! their validators, and the cache of what was compressed.

mod cache;
mod dictionaries;
mod in_turns;

use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, ETAG, HeaderMap, HeaderValue, SET_COOKIE, VARY,
};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, ServiceExt, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::Predicate;

use self::cache::{Cache, Key};
use self::dictionaries::{Dictionaries, Hash, Source};
pub use self::dictionaries::{DictionaryPattern, InvalidPattern};
use self::in_turns::InTurns;
use super::Site;
use crate::body::{Body, BoxError};
use crate::content::content_length;
use crate::limits::{
    COMPRESSIONS, COMPRESSIONS_OF_DIFFERENCE, MAX_COMPRESSED_ENTRY, MIN_COMPRESSED_BYTES,
};

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
    dictionaries: Option<Arc<Dictionaries>>,
}

/// The parts of a request on which the compression of its response depends.
pub struct Acceptable {
    is_head: bool,
    target: Option<PathAndQuery>,
    /// The values of `Accept-Encoding`.
    codings: Vec<HeaderValue>,
    /// The dictionary that the client has.
    dictionary: Option<Hash>,
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
            dictionary: dictionaries::available(request.headers()),
        }
    }

    /// The dictionary that the client has, if it takes content in [`dictionaries::CODING`].
    fn dictionary(&self) -> Option<Hash> {
        let values = self.codings.iter().map(HeaderValue::as_bytes);
        let mut codings = values.flat_map(|value| value.split(|&byte| byte == b','));
        let takes = codings.any(|coding| {
            let mut parts = coding.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            name.eq_ignore_ascii_case(dictionaries::CODING.as_bytes()) && !parts.any(is_zero)
        });
        self.dictionary.filter(|_| takes)
    }

    /// The representation that is compressed, if its `headers` name it.
    fn source(&self, headers: &HeaderMap) -> Option<Source> {
        let tag = headers.get(ETAG).filter(|tag| is_strong(tag))?;
        Some(Source {
            target: self.target.clone()?,
            tag: tag.clone(),
        })
    }

    /// Whether the client names codings without weights, so that it does not exclude that there is none.
    fn is_unweighted(&self) -> bool {
        self.codings
            .iter()
            .all(|value| !value.as_bytes().contains(&b';'))
    }
}

impl Compression {
    /// One with an empty cache. Responses of paths that match `dictionaries` are dictionaries of each other.
    pub fn new(dictionaries: Option<DictionaryPattern>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(COMPRESSIONS)),
            cache: Arc::default(),
            dictionaries: dictionaries.map(|pattern| Arc::new(Dictionaries::new(pattern))),
        }
    }

    /// `response`, compressed if it can be, and if that is `acceptable`.
    pub async fn apply(
        &self,
        acceptable: Acceptable,
        mut response: Response<Body>,
    ) -> Response<Body> {
        let is_text = is_text(&response);
        let is_head = acceptable.is_head;
        let (mut source, mut is_learnt) = (None, false);
        if is_text {
            vary(response.headers_mut(), "accept-encoding");
            source = acceptable.source(response.headers());
            if let Some(dictionaries) = &self.dictionaries {
                vary(response.headers_mut(), "available-dictionary");
                is_learnt = source
                    .as_ref()
                    .is_some_and(|source| dictionaries.learn(source, is_head, &mut response));
            }
        }
        if acceptable.codings.is_empty() || (!is_text && acceptable.is_unweighted()) {
            return response;
        }
        if is_text {
            if let Some((hash, dictionary)) = self.dictionary(&acceptable)
                && let Some(permit) = self.permit(COMPRESSIONS_OF_DIFFERENCE)
            {
                let job = Job {
                    permit,
                    source,
                    is_learnt,
                    dictionary: Some(hash),
                };
                let response = dictionaries::difference(response, hash, dictionary);
                return self.complete(job, is_head, response);
            }
            if let Some(permit) = self.permit(1) {
                let job = Job {
                    permit,
                    source,
                    is_learnt,
                    dictionary: None,
                };
                response.extensions_mut().insert(job);
                response = response.map(|body| Body::new(InTurns::new(body)));
            }
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
            .compress_when(IsJob)
            .layer(service_fn(|_: Request<()>| {
                // It is called once.
                let response = response.take();
                ready(Ok::<_, Infallible>(
                    response.unwrap_or_else(|| Response::new(Body::empty())),
                ))
            }));
        let Ok(response) = coded.oneshot(request).await;
        let mut response = response.map(Body::new);
        match response.extensions_mut().remove::<Job>() {
            Some(job) if response.headers().contains_key(CONTENT_ENCODING) => {
                self.complete(job, is_head, response)
            }
            _ => response,
        }
    }

    fn permit(&self, places: u32) -> Option<Arc<OwnedSemaphorePermit>> {
        let permit = Arc::clone(&self.permits).try_acquire_many_owned(places);
        permit.ok().map(Arc::new)
    }

    /// The dictionary that the client has, if it is kept, and the client takes its coding.
    fn dictionary(&self, acceptable: &Acceptable) -> Option<(Hash, Bytes)> {
        let dictionaries = self.dictionaries.as_ref()?;
        let hash = acceptable.dictionary()?;
        Some((hash, dictionaries.get(&hash)?))
    }

    /// Completes a response that was compressed.
    fn complete(&self, job: Job, is_head: bool, response: Response<Body>) -> Response<Body> {
        let (mut parts, body) = response.into_parts();
        weaken_tag(&mut parts.headers);
        if is_head {
            return Response::from_parts(parts, Body::empty());
        }
        let coding = parts.headers.get(CONTENT_ENCODING).cloned();
        let key = job.source.zip(coding).map(|(source, coding)| Key {
            source,
            coding,
            dictionary: job.dictionary,
        });
        let body = match key {
            Some(key) => match self.cache.get(&key).filter(|_| !job.is_learnt) {
                Some(content) => {
                    parts.headers.insert(CONTENT_LENGTH, content.len().into());
                    Body::full(content)
                }
                None => {
                    let cache = Arc::clone(&self.cache);
                    Body::new(Compressed::kept(body, job.permit, cache, key))
                }
            },
            None => Body::new(Compressed::new(body, job.permit)),
        };
        Response::from_parts(parts, body)
    }
}

impl fmt::Debug for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compression").finish_non_exhaustive()
    }
}

/// Whether a parameter is the weight of a coding that is excluded, as `q=0.0` (RFC 9110, section 12.4.2).
fn is_zero(parameter: &[u8]) -> bool {
    let weight = parameter
        .strip_prefix(b"q=")
        .or(parameter.strip_prefix(b"Q="));
    weight.is_some_and(|weight| weight.iter().all(|byte| matches!(byte, b'0' | b'.')))
}

/// Answers as `site` does, with `compression`. What is meant for one client alone is not kept: entity tags of applications may be the same
/// for the pages of different users.
pub fn compressed(site: Site, compression: Compression) -> Site {
    Site::new(service_fn(move |request: Request<Body>| {
        let (site, compression) = (site.clone(), compression.clone());
        async move {
            let mut acceptable = Acceptable::to(&request);
            let is_personal = [AUTHORIZATION, COOKIE]
                .iter()
                .any(|name| request.headers().contains_key(name));
            let response = site.oneshot(request).await?;
            if !is_shared(response.headers(), is_personal) {
                acceptable.target = None;
            }
            Ok(compression.apply(acceptable, response).await)
        }
    }))
}

/// Whether a response with `headers` may be given to other clients, as shared caches do (RFC 9111, section 3). `is_personal` says that the
/// request named its user.
fn is_shared(headers: &HeaderMap, is_personal: bool) -> bool {
    let is_private = is_personal
        || headers.contains_key(SET_COOKIE)
        || ["private", "no-store"]
            .iter()
            .any(|name| has_directive(headers, name));
    !is_private || has_directive(headers, "public")
}

/// Whether `Cache-Control` has the directive `name`.
fn has_directive(headers: &HeaderMap, name: &str) -> bool {
    headers.get_all(CACHE_CONTROL).iter().any(|value| {
        let mut directives = value.as_bytes().split(|&byte| byte == b',');
        directives.any(|directive| {
            let one = directive.split(|&byte| byte == b'=').next();
            one.is_some_and(|one| one.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        })
    })
}

/// A response that may be compressed, with the right to do so.
#[derive(Clone)]
struct Job {
    permit: Arc<OwnedSemaphorePermit>,
    /// The content before, if it is kept compressed.
    source: Option<Source>,
    /// Whether the content has to be read, whatever is kept of it.
    is_learnt: bool,
    /// The dictionary with which it is compressed.
    dictionary: Option<Hash>,
}

/// Compresses responses with a [`Job`].
#[derive(Clone, Copy)]
struct IsJob;

impl Predicate for IsJob {
    fn should_compress<B>(&self, response: &Response<B>) -> bool
    where
        B: http_body::Body,
    {
        response.extensions().get::<Job>().is_some()
    }
}

/// Whether a response has content that gets shorter by compression, and may be changed.
fn is_text(response: &Response<Body>) -> bool {
    let headers = response.headers();
    response.status() == StatusCode::OK
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !has_directive(headers, "no-transform")
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

/// Adds the field `name` to `Vary`, unless it is there.
fn vary(headers: &mut HeaderMap, name: &'static str) {
    let is_there = headers.get_all(VARY).iter().any(|value| {
        let mut names = value.as_bytes().split(|&byte| byte == b',');
        names.any(|one| {
            let one = one.trim_ascii();
            one == b"*" || one.eq_ignore_ascii_case(name.as_bytes())
        })
    });
    if !is_there {
        headers.append(VARY, HeaderValue::from_static(name));
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
