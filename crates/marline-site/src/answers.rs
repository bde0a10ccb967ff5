//! Responses that a site makes itself.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use marline_http::Body;

/// A response with a line of text.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let content = text.to_owned();
    let mut response = Response::new(Body::full(content));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CONTENT_LENGTH, text.len().into());
    response
}

/// A redirect to `target`.
pub(crate) fn redirect(status: StatusCode, target: &str) -> Response<Body> {
    let Ok(location) = HeaderValue::try_from(target) else {
        return plain(StatusCode::BAD_REQUEST, "Bad request\n");
    };
    let mut response = plain(status, "");
    response.headers_mut().insert(LOCATION, location);
    response
}
