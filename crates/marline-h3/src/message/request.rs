//! Requests (RFC 9114, sections 4.3.1 and 4.4).

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};

use super::Protocol;
use super::authority::{is_authority, without_empty_port};
use super::fields::{Section, set_once};
use crate::error::StreamError;
use crate::qpack::FieldLine;

/// A request, and further information for its receiver.
pub(crate) struct DecodedRequest {
    pub(crate) request: Request<()>,
    pub(crate) content_length: Option<u64>,
}

#[derive(Default)]
struct Pseudo {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    protocol: Option<Bytes>,
}

/// The request of a field section.
///
/// # Errors
/// H3_MESSAGE_ERROR: it is malformed.
pub(crate) fn decode_request(
    fields: Vec<FieldLine>,
    connect_protocol: bool,
) -> Result<DecodedRequest, StreamError> {
    let mut pseudo = Pseudo::default();
    let section = Section::new(fields, |name, value| match name {
        b"method" => set_once(&mut pseudo.method, value),
        b"scheme" => set_once(&mut pseudo.scheme, value),
        b"authority" => set_once(&mut pseudo.authority, value),
        b"path" => set_once(&mut pseudo.path, value),
        // An end that has not announced extended CONNECT does not know it.
        b"protocol" if connect_protocol => set_once(&mut pseudo.protocol, value),
        _ => Err(StreamError::malformed(
            "an unknown pseudo-header field in a request",
        )),
    })?;
    let mut request = Request::new(());
    *request.version_mut() = Version::HTTP_3;
    *request.headers_mut() = section.headers;
    let method = pseudo
        .method
        .take()
        .ok_or(StreamError::malformed("a request without :method"))?;
    *request.method_mut() =
        Method::from_bytes(&method).map_err(|_| StreamError::malformed("an invalid :method"))?;
    let protocol = pseudo.protocol.take();
    *request.uri_mut() = if request.method() == Method::CONNECT && protocol.is_none() {
        connect_target(pseudo)?
    } else {
        target(pseudo, &request)?
    };
    if let Some(protocol) = protocol {
        if request.method() != Method::CONNECT {
            return Err(StreamError::malformed(":protocol without CONNECT"));
        }
        let name = std::str::from_utf8(&protocol).ok().and_then(Protocol::new);
        let name = name.ok_or(StreamError::malformed("an invalid :protocol"))?;
        request.extensions_mut().insert(name);
    }
    // A request by CONNECT has no content of its own.
    let content_length = section
        .content_length
        .filter(|_| request.method() != Method::CONNECT);
    Ok(DecodedRequest {
        request,
        content_length,
    })
}

/// Of CONNECT: host and port only (section 4.4).
fn connect_target(pseudo: Pseudo) -> Result<Uri, StreamError> {
    if pseudo.scheme.is_some() || pseudo.path.is_some() {
        return Err(StreamError::malformed("CONNECT with :scheme or :path"));
    }
    let authority = pseudo
        .authority
        .ok_or(StreamError::malformed("CONNECT without :authority"))?;
    let authority = parse_authority(authority)?;
    if authority.port().is_none() {
        return Err(StreamError::malformed("CONNECT without a port"));
    }
    Ok(Uri::from(authority))
}

/// Of every other method: scheme, authority and path (section 4.3.1).
fn target(pseudo: Pseudo, request: &Request<()>) -> Result<Uri, StreamError> {
    let scheme = pseudo
        .scheme
        .ok_or(StreamError::malformed("a request without :scheme"))?;
    // `Scheme` takes none for a valid one.
    let scheme = Some(&scheme[..])
        .filter(|scheme| scheme.first().is_some_and(u8::is_ascii_alphabetic))
        .and_then(|scheme| Scheme::try_from(scheme).ok())
        .ok_or(StreamError::malformed("an invalid :scheme"))?;
    let path = pseudo
        .path
        .ok_or(StreamError::malformed("a request without :path"))?;
    let is_asterisk = path == "*" && request.method() == Method::OPTIONS;
    if !path.starts_with(b"/") && !is_asterisk {
        return Err(StreamError::malformed("an invalid :path"));
    }
    let path = PathAndQuery::from_maybe_shared(path)
        .map_err(|_| StreamError::malformed("an invalid :path"))?;
    let authority = authority(pseudo.authority, request)?;
    Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(|_| StreamError::malformed("an invalid target"))
}

/// `:authority`, or `host` in its place; with both, they have the same value.
fn authority(given: Option<Bytes>, request: &Request<()>) -> Result<Authority, StreamError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(StreamError::malformed("several host fields"));
    }
    match (given, host) {
        (Some(authority), Some(host)) if !is_same_host(&authority, host.as_bytes()) => {
            Err(StreamError::malformed(":authority and host differ"))
        }
        (Some(authority), _) => parse_authority(authority),
        (None, Some(host)) => parse_authority(Bytes::copy_from_slice(host.as_bytes())),
        (None, None) => Err(StreamError::malformed(
            "a request without :authority and host",
        )),
    }
}

fn is_same_host(one: &[u8], other: &[u8]) -> bool {
    without_empty_port(one).eq_ignore_ascii_case(without_empty_port(other))
}

fn parse_authority(authority: Bytes) -> Result<Authority, StreamError> {
    if !is_authority(&authority) {
        return Err(StreamError::malformed("an invalid authority"));
    }
    Authority::from_maybe_shared(authority)
        .map_err(|_| StreamError::malformed("an invalid authority"))
}
