//! Range requests (RFC 9110 section 14) for a service that serves whole files and single ranges.

mod multipart;
mod spec;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue,
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
    RANGE,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tower::{Service, ServiceExt};

pub(in crate::server) use self::spec::ByteRange;
use super::super::resources::Origin;
use super::validators::is_strong_date;
use crate::body::Body;
use crate::content::content_length;

/// Turns `Range` and `If-Range` into requests with one range of bytes, or none.
#[derive(Clone)]
pub(in crate::server) struct Ranges<S>(S);

impl<S> Ranges<S> {
    pub(in crate::server) fn new(inner: S) -> Self {
        Self(inner)
    }

    /// Whether `request` has one of the fields that this service is for.
    pub(in crate::server) fn concern<B>(request: &Request<B>) -> bool {
        let headers = request.headers();
        headers.contains_key(RANGE) || headers.contains_key(IF_RANGE)
    }
}

impl<S> Service<Request<Body>> for Ranges<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Unpin
        + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let range = request.headers_mut().remove(RANGE);
        let if_range = request.headers_mut().remove(IF_RANGE);
        match range {
            // Ranges are defined for GET only (RFC 9110 section 14.2).
            Some(range) if request.method() == Method::GET => {
                let service = self.0.clone();
                Box::pin(answer(service, request, range, if_range))
            }
            _ => Box::pin(self.0.call(request)),
        }
    }
}

async fn answer<S>(
    service: S,
    request: Request<Body>,
    range: HeaderValue,
    if_range: Option<HeaderValue>,
) -> Result<Response<Body>, Infallible>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Unpin
        + 'static,
    S::Future: Send,
{
    let (mut parts, _) = request.into_parts();
    let now = parts.extensions.get().and_then(Origin::unix_time);
    let specs = spec::parse(range.as_bytes());
    // A content coding would apply to the multipart format as well: several ranges are served without one.
    if specs.as_ref().is_some_and(|specs| specs.len() > 1) {
        parts.headers.remove(ACCEPT_ENCODING);
    }
    let whole = || Request::from_parts(parts.clone(), Body::empty());
    let Some(specs) = specs else {
        return service.oneshot(whole()).await;
    };

    // A response without content has the size, to resolve the ranges, and the validator, to check `If-Range`.
    let mut head = whole();
    *head.method_mut() = Method::HEAD;
    let head = service.clone().oneshot(head).await?;
    let size = content_length(head.headers()).filter(|_| head.status() == StatusCode::OK);
    let current = if_range
        .as_ref()
        .is_none_or(|tag| matches_validator(tag, head.headers(), now));
    let (Some(size), true) = (size, current) else {
        return service.oneshot(whole()).await;
    };
    let ranges = spec::resolve(&specs, size);
    if ranges.is_empty() {
        // The last bytes of none are none, which no `Content-Range` can say (RFC 9110 section 14.1.2).
        return match specs.iter().any(spec::RangeSpec::is_end) && size == 0 {
            true => service.oneshot(whole()).await,
            false => Ok(not_satisfiable(size)),
        };
    }
    // Overlapping ranges with more bytes than the file: the whole file is shorter.
    let lengths = ranges.iter().map(spec::ByteRange::len);
    let asked = lengths.fold(0, u64::saturating_add);
    if ranges.len() > 1 && asked > size {
        return service.oneshot(whole()).await;
    }
    if let [range] = ranges[..] {
        let part = one_range(&parts, range, None);
        let part = service.clone().oneshot(part).await?;
        // The file may have changed since.
        let is_current = part.headers().get(ETAG) == head.headers().get(ETAG);
        return match if_range.is_none() || is_current {
            true => Ok(part),
            false => service.oneshot(whole()).await,
        };
    }
    Ok(multipart::response(
        service,
        &parts,
        head.headers(),
        &ranges,
        size,
    ))
}

/// The request for one range; with `pinned`, only if the representation has this entity tag.
fn one_range(parts: &Parts, range: spec::ByteRange, pinned: Option<&HeaderValue>) -> Request<Body> {
    let mut request = Request::from_parts(parts.clone(), Body::empty());
    let headers = request.headers_mut();
    headers.insert(RANGE, range.header_value());
    if let Some(tag) = pinned {
        for settled in [
            IF_MATCH,
            IF_NONE_MATCH,
            IF_MODIFIED_SINCE,
            IF_UNMODIFIED_SINCE,
        ] {
            headers.remove(settled);
        }
        headers.insert(IF_MATCH, tag.clone());
    }
    request
}

/// `If-Range` uses strong comparison (RFC 9110 section 13.1.5).
fn matches_validator(if_range: &HeaderValue, headers: &HeaderMap, now: Option<SystemTime>) -> bool {
    let validator = if_range.as_bytes();
    if validator.starts_with(b"\"") {
        headers.get(ETAG).is_some_and(|tag| tag == if_range)
    } else if validator.starts_with(b"W/") {
        false
    } else {
        headers
            .get(LAST_MODIFIED)
            .is_some_and(|date| is_strong_date(if_range, date, now))
    }
}

fn not_satisfiable(size: u64) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    let headers = response.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{size}")) {
        headers.insert(CONTENT_RANGE, value);
    }
    response
}

#[cfg(test)]
mod tests;
