//! Responses that a site makes itself.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use marline_http::Body;
use marline_http::server::Refusal;

/// A response with a line of text.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    with_text(response, text)
}

/// `response` with a line of text as its content.
pub(crate) fn with_text(response: Response<Body>, text: &str) -> Response<Body> {
    let content = text.to_owned();
    let mut response = response.map(|_| Body::full(content));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CONTENT_LENGTH, text.len().into());
    response
}

/// The response to a request that is refused, with a line of text.
pub(crate) fn refused(refusal: Refusal, text: &str) -> Response<Body> {
    let mut response = plain(refusal.status(), text);
    response.extensions_mut().insert(refusal);
    response
}

/// A redirect to `target`.
pub(crate) fn redirect(status: StatusCode, target: &str) -> Response<Body> {
    let Ok(location) = HeaderValue::try_from(target) else {
        return refused(Refusal::Path, "Bad request\n");
    };
    let mut response = plain(status, "");
    response.headers_mut().insert(LOCATION, location);
    response
}
