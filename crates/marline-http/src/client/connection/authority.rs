//! The host that a request is for: `Host` in HTTP/1.1 (RFC 9112, section 3.2), `:authority` in later versions (RFC 9113,
//! section 8.3.1; RFC 9114, section 4.3.1).

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Request, Uri};

use crate::client::ClientError;

/// Takes the host out of the header fields of `request`; `None` if they have none.
///
/// # Errors
/// The field is not a valid host, or there are several.
pub(super) fn take<B>(request: &mut Request<B>) -> Result<Option<Authority>, ClientError> {
    let headers = request.headers_mut();
    match only_host(headers) {
        Host::Missing => Ok(None),
        Host::Valid(host) => {
            headers.remove(HOST);
            Ok(Some(host))
        }
        Host::Invalid => Err(ClientError::Header {
            name: HOST,
            reason: "give it once, as a host with or without a port",
        }),
    }
}

/// The value of the field `Host`.
enum Host {
    Missing,
    Valid(Authority),
    Invalid,
}

fn only_host(headers: &HeaderMap) -> Host {
    let mut values = headers.get_all(HOST).iter();
    let (first, second) = (values.next(), values.next());
    let Some(first) = first else {
        return Host::Missing;
    };
    match Authority::try_from(first.as_bytes()) {
        Ok(host) if second.is_none() && !host.as_str().contains('@') => Host::Valid(host),
        _ => Host::Invalid,
    }
}

/// Makes `request` one for `host`, if there is one.
pub(super) fn put<B>(request: &mut Request<B>, host: Option<Authority>) {
    let Some(host) = host else { return };
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    // Only a URI with a scheme has an authority in addition to a path.
    if parts.scheme.is_some() {
        parts.authority = Some(host);
    }
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}
