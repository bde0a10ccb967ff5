//! URLs: the origin to connect to, and the request target.

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use super::{ClientError, HttpVersion};

/// Scheme, host and port: requests to one origin can share connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The host as certificates name it: IPv6 addresses without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) authority: Authority,
    pub(super) scheme: Scheme,
}

impl Origin {
    /// Host and port as in its URLs.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }
}

/// As in a URL.
impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

/// The result of [`parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedUrl {
    /// Where to connect.
    pub origin: Origin,
    /// What to request, without a fragment.
    pub uri: Uri,
}

/// Parses a URL; `version` decides which schemes are allowed. The fragment is dropped: it is not sent to
/// servers.
///
/// # Errors
/// [`ClientError::Url`], with the reason.
pub fn parse(url: &str, version: HttpVersion) -> Result<ParsedUrl, ClientError> {
    let wrong = |reason| ClientError::Url {
        url: url.to_owned(),
        reason,
    };
    let visible = url.split('#').next().unwrap_or_default();
    if !visible.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(
            "spaces and other special characters must be percent-encoded",
        ));
    }
    let uri: Uri = visible
        .parse()
        .map_err(|_| wrong("not a URL; write it like https://example.org/file"))?;
    let (scheme, default_port) = match (uri.scheme_str(), version) {
        (Some("http"), HttpVersion::Http11Cleartext) => (Scheme::HTTP, 80),
        (Some("http"), _) => {
            return Err(wrong(
                "http:// is fetched by cleartext HTTP/1.1 only; write https://",
            ));
        }
        (Some("https"), HttpVersion::Http11Cleartext) => {
            return Err(wrong(
                "https:// is encrypted; write http:// for cleartext HTTP/1.1",
            ));
        }
        (Some("https"), _) => (Scheme::HTTPS, 443),
        (Some(_), _) => return Err(wrong("only http:// and https:// are supported")),
        (None, _) => return Err(wrong("not a URL; write it like https://example.org/file")),
    };
    let mut parts = uri.into_parts();
    let Some(authority) = parts.authority.clone() else {
        return Err(wrong("the host is missing"));
    };
    if authority.as_str().contains('@') {
        return Err(wrong(
            "names and passwords in URLs are not supported; send a header",
        ));
    }
    let host = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    if host.is_empty() {
        return Err(wrong("the host is missing"));
    }
    if authority.as_str() != authority.host() && authority.port_u16().is_none() {
        return Err(wrong("the port is not a number below 65536"));
    }
    let origin = Origin {
        host: host.to_ascii_lowercase(),
        port: authority.port_u16().unwrap_or(default_port),
        authority,
        scheme,
    };
    if parts
        .path_and_query
        .as_ref()
        .is_none_or(|path| path.as_str().is_empty())
    {
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
    }
    let uri = Uri::from_parts(parts).map_err(|_| wrong("the path is not valid"))?;
    Ok(ParsedUrl { origin, uri })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_into_origin_and_target() {
        let ParsedUrl { origin, uri } =
            parse("https://[::1]:4433/a%20b?q=1#x", HttpVersion::Http3).unwrap();
        assert_eq!((origin.host.as_str(), origin.port), ("::1", 4433));
        assert_eq!(uri, "https://[::1]:4433/a%20b?q=1");
        let origin = parse("https://example.org", HttpVersion::Http2)
            .unwrap()
            .origin;
        assert_eq!(
            (origin.port, origin.authority.as_str()),
            (443, "example.org")
        );
    }

    #[test]
    fn urls_that_cannot_be_fetched_are_errors() {
        for (url, version) in [
            ("example.org", HttpVersion::Http3),
            ("", HttpVersion::Http3),
            ("https://", HttpVersion::Http3),
            ("https://:1/", HttpVersion::Http3),
            ("https://host:99999/", HttpVersion::Http3),
            ("https://host/a b", HttpVersion::Http3),
            ("ftp://example.org", HttpVersion::Http3),
            ("http://example.org", HttpVersion::Http3),
            ("https://example.org", HttpVersion::Http11Cleartext),
            ("https://me@example.org", HttpVersion::Http2),
        ] {
            assert!(
                matches!(parse(url, version), Err(ClientError::Url { .. })),
                "{url}"
            );
        }
    }
}
