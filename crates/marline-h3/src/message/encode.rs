//! Messages to field lines.

use std::borrow::Cow;

use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, TE};
use http::{Method, Request, StatusCode};

use super::Protocol;
use super::fields::is_connection_specific;
use crate::qpack::FieldRef;

/// The value of `:path` for a request.
pub(crate) fn request_path(request: &Request<()>) -> Cow<'_, str> {
    if request.method() == Method::OPTIONS && request.uri().path() == "*" {
        return "*".into();
    }
    match request.uri().path_and_query() {
        None => "/".into(),
        Some(path) if path.as_str().starts_with('/') => path.as_str().into(),
        // A URI may have a query and no path.
        Some(path) => format!("/{path}").into(),
    }
}

/// The field lines of a request with this path; `None` if it has no host. Without a scheme in its URI, it is `https`.
pub(crate) fn request_fields<'a>(
    request: &'a Request<()>,
    path: &'a str,
) -> Option<Vec<FieldRef<'a>>> {
    let (uri, headers) = (request.uri(), request.headers());
    let protocol = request.extensions().get::<Protocol>();
    let mut fields = Vec::with_capacity(5 + headers.len());
    fields.push(pseudo(":method", request.method().as_str().as_bytes()));
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    let authority = match uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => host?,
    };
    let has_path = request.method() != Method::CONNECT || protocol.is_some();
    if has_path {
        let scheme = uri.scheme_str().unwrap_or("https");
        fields.push(pseudo(":scheme", scheme.as_bytes()));
    }
    fields.push(pseudo(":authority", authority));
    if has_path {
        fields.push(pseudo(":path", path.as_bytes()));
    }
    if let Some(protocol) = protocol {
        fields.push(pseudo(":protocol", protocol.as_str().as_bytes()));
    }
    // `:authority` stands for `host`, and both would have to be equal.
    fields.extend(regular(headers).filter(|field| field.name != b"host"));
    Some(fields)
}

/// The field lines of a response.
pub(crate) fn response_fields<'a>(
    status: &'a StatusCode,
    headers: &'a HeaderMap,
) -> Vec<FieldRef<'a>> {
    let mut fields = Vec::with_capacity(1 + headers.len());
    fields.push(pseudo(":status", status.as_str().as_bytes()));
    fields.extend(regular(headers));
    fields
}

/// The field lines of trailers.
pub(crate) fn trailer_fields(headers: &HeaderMap) -> Vec<FieldRef<'_>> {
    regular(headers).collect()
}

/// Fields of HTTP/1.1 alone are left out: sites need not know which version they are served over.
fn regular(headers: &HeaderMap) -> impl Iterator<Item = FieldRef<'_>> {
    headers
        .iter()
        .filter(|(name, value)| {
            !is_connection_specific(name) && (**name != TE || *value == "trailers")
        })
        .map(|(name, value)| FieldRef {
            name: name.as_str().as_bytes(),
            value: value.as_bytes(),
            is_sensitive: value.is_sensitive() || *name == AUTHORIZATION,
        })
}

fn pseudo<'a>(name: &'static str, value: &'a [u8]) -> FieldRef<'a> {
    FieldRef {
        name: name.as_bytes(),
        value,
        is_sensitive: false,
    }
}
