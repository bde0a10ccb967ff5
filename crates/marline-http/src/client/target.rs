//! URLs: the origin to connect to, and the request target.

use std::borrow::Cow;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use rustls::pki_types::ServerName;

use super::address::is_link_local;
use super::{ClientError, HttpVersion};
use crate::authority::port_of;

/// Scheme, host and port: requests to one origin can share connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The host as certificates name it: IPv6 addresses without brackets.
    pub(super) host: String,
    /// The interface to which a link-local address belongs, by name or number: of this machine only, so that it is not sent
    /// (RFC 9844).
    pub(super) zone: Option<String>,
    pub(super) port: u16,
    pub(super) authority: Authority,
    pub(super) scheme: Scheme,
}

impl Origin {
    /// The server whose certificate has `name`, and that requests without a host name as `authority`.
    pub(crate) fn named(name: &ServerName<'_>, authority: Authority) -> Self {
        Self {
            host: name.to_str().into_owned(),
            zone: None,
            port: authority.port_u16().unwrap_or(443),
            authority,
            scheme: Scheme::HTTPS,
        }
    }

    /// Whether its connections are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The version of HTTP for it, if that of others is `version`.
    pub(super) fn version(&self, version: HttpVersion) -> HttpVersion {
        match self.is_encrypted() {
            true => version,
            false => HttpVersion::Http11Cleartext,
        }
    }

    /// Whether `other` is the same but for the zone, which URIs do not have.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.host == other.host && self.port == other.port && self.scheme == other.scheme
    }

    /// Its host, in lower case, and without the brackets of IPv6.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as in its URLs.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Host and port, also where the URL leaves out the port.
    pub(super) fn host_and_port(&self) -> String {
        format!("{}:{}", self.authority.host(), self.port)
    }
}

/// As in a URL.
impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

/// The schemes of URLs that may be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schemes {
    /// Whether `http://` is one.
    pub http: bool,
    /// Whether `https://` is one.
    pub https: bool,
}

impl Default for Schemes {
    /// Both.
    fn default() -> Self {
        Self {
            http: true,
            https: true,
        }
    }
}

impl Schemes {
    /// Those that are among `others`, too.
    #[must_use]
    pub fn within(self, others: Self) -> Self {
        Self {
            http: self.http && others.http,
            https: self.https && others.https,
        }
    }

    /// Checks the scheme of `url`, if it is one of these at all.
    pub(super) fn check(self, url: &str) -> Result<(), ClientError> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let is_allowed = match scheme.to_ascii_lowercase().as_str() {
            "http" => self.http,
            "https" => self.https,
            _ => true,
        };
        match is_allowed {
            true => Ok(()),
            false => Err(ClientError::SchemeNotAllowed {
                url: url.to_owned(),
            }),
        }
    }
}

/// The result of [`parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedUrl {
    /// The origin to connect to.
    pub origin: Origin,
    /// The URI to request, without a fragment.
    pub uri: Uri,
}

/// Parses a URL; `version` decides which schemes are allowed. The fragment is dropped: it is not sent to
/// servers.
///
/// # Errors
/// [`ClientError::Url`], with the reason, or [`ClientError::Scheme`].
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
    let Unzoned { url: visible, zone } = without_zone(visible).map_err(wrong)?;
    // With an empty host, as in file:///a, others do not parse.
    if let Some((scheme, _)) = visible.split_once("://")
        && Scheme::try_from(scheme)
            .is_ok_and(|scheme| ![Scheme::HTTP, Scheme::HTTPS].contains(&scheme))
    {
        return Err(ClientError::Scheme {
            url: url.to_owned(),
        });
    }
    let uri: Uri = visible
        .parse()
        .map_err(|_| wrong("not a URL; write it like https://example.org/file"))?;
    let (scheme, default_port) = match (uri.scheme_str(), version) {
        (Some("http"), _) => (Scheme::HTTP, 80),
        (Some("https"), HttpVersion::Http11Cleartext) => {
            return Err(wrong(
                "https:// is encrypted; write http:// for cleartext HTTP/1.1",
            ));
        }
        (Some("https"), _) => (Scheme::HTTPS, 443),
        _ => return Err(wrong("not a URL; write it like https://example.org/file")),
    };
    let mut parts = uri.into_parts();
    let Some(authority) = parts.authority.as_mut() else {
        return Err(wrong("the host is missing"));
    };
    // An empty port is the default one (RFC 3986, section 3.2.3), which servers are not sent.
    if let Some(without) = authority.as_str().strip_suffix(':') {
        *authority = without.parse().map_err(|_| wrong("the host is missing"))?;
    }
    let authority = authority.clone();
    if authority.as_str().contains('@') {
        return Err(wrong("the user in it is sent separately"));
    }
    let host = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    if host.is_empty() {
        return Err(wrong("the host is missing"));
    }
    let port = port_of(&authority).map_err(|_| wrong("the port is not a number below 65536"))?;
    if zone.is_some() && !host.parse().is_ok_and(is_link_local) {
        return Err(wrong(
            "an interface after % belongs to link-local addresses only, those of fe80::/10",
        ));
    }
    let origin = Origin {
        host: host.to_ascii_lowercase(),
        zone,
        port: port.unwrap_or(default_port),
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

/// A URL whose address has no zone, and that zone.
struct Unzoned<'a> {
    url: Cow<'a, str>,
    zone: Option<String>,
}

/// Takes the zone out of an IPv6 address, which is written as `%25eth0` (RFC 6874) or as `%eth0` (RFC 9844).
fn without_zone(url: &str) -> Result<Unzoned<'_>, &'static str> {
    let begin = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[begin..]
        .find(['/', '?'])
        .map_or(url.len(), |end| begin + end);
    let zoned = url[begin..end].find('%').map(|percent| begin + percent);
    let closing = url[begin..end].find(']').map(|closing| begin + closing);
    let (Some(percent), Some(closing)) = (zoned, closing) else {
        return Ok(Unzoned {
            url: url.into(),
            zone: None,
        });
    };
    let zone = url
        .get(percent + 1..closing)
        .ok_or("the brackets of the address are not in order")?;
    // As for curl, %25 alone is the number 25.
    let zone = match zone.strip_prefix("25").filter(|rest| !rest.is_empty()) {
        Some(encoded) => percent_decoded(encoded),
        None => Some(zone.as_bytes().to_vec()),
    };
    let zone = zone.and_then(|zone| String::from_utf8(zone).ok());
    match zone.filter(|zone| !zone.is_empty() && !zone.contains(['%', '\0'])) {
        None => Err("the interface after % is not one; write it as [fe80::1%25eth0]"),
        Some(zone) => Ok(Unzoned {
            url: format!("{}{}", &url[..percent], &url[closing..]).into(),
            zone: Some(zone),
        }),
    }
}

/// The bytes that a percent-encoded text stands for (RFC 3986, section 2.1).
pub(super) fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            decoded.push(*byte);
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let digits = str::from_utf8(digits).ok()?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(decoded)
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

    /// RFC 3986, section 3.2.3.
    #[test]
    fn an_empty_port_is_the_default_one() {
        for (url, port, authority) in [
            ("https://example.org:/a", 443, "example.org"),
            ("https://[::1]:", 443, "[::1]"),
            ("http://example.org:/", 80, "example.org"),
        ] {
            let version = match port {
                80 => HttpVersion::Http11Cleartext,
                _ => HttpVersion::Http3,
            };
            let ParsedUrl { origin, uri } = parse(url, version).unwrap();
            assert_eq!((origin.port, origin.authority.as_str()), (port, authority));
            assert_eq!(uri.authority().unwrap(), authority);
        }
    }

    #[test]
    fn the_zone_of_an_address_is_no_part_of_what_is_sent() {
        for (url, zone) in [
            ("https://[fe80::1%eth0]:4433/a%20b?q=%25", Some("eth0")),
            ("https://[fe80::1%25eth0]:4433/a%20b?q=%25", Some("eth0")),
            ("https://[fe80::1%252]:4433/a%20b?q=%25", Some("2")),
            ("https://[fe80::1%2]:4433/a%20b?q=%25", Some("2")),
            ("https://[fe80::1%25]:4433/a%20b?q=%25", Some("25")),
            ("https://[fe80::1%25br%2d7]:4433/a%20b?q=%25", Some("br-7")),
            ("https://[fe80::1]:4433/a%20b?q=%25", None),
        ] {
            let ParsedUrl { origin, uri } = parse(url, HttpVersion::Http3).unwrap();
            assert_eq!(origin.zone.as_deref(), zone, "{url}");
            assert_eq!((origin.host.as_str(), origin.port), ("fe80::1", 4433));
            assert_eq!(origin.authority, "[fe80::1]:4433");
            assert_eq!(uri, "https://[fe80::1]:4433/a%20b?q=%25");
        }
        for wrong in [
            "https://[fe80::1%]/",
            "https://[fe80::1%25%zz]/",
            "https://[::1%lo]/",
            "https://[2001:db8::1%25eth0]/",
            "https://]fe80::1%eth0[/",
            "https://[fe80::1%25a%00b]/",
        ] {
            let parsed = parse(wrong, HttpVersion::Http3);
            assert!(matches!(parsed, Err(ClientError::Url { .. })), "{wrong}");
        }
    }

    #[test]
    fn schemes_of_other_protocols_are_named_as_such() {
        for url in ["file:///etc/passwd", "ftp://example.org/a", "gopher://a"] {
            let parsed = parse(url, HttpVersion::Http3);
            assert!(matches!(parsed, Err(ClientError::Scheme { .. })), "{url}");
        }
    }

    #[test]
    fn urls_that_cannot_be_fetched_are_errors() {
        for (url, version) in [
            ("example.org", HttpVersion::Http3),
            ("", HttpVersion::Http3),
            ("https://", HttpVersion::Http3),
            ("https://:1/", HttpVersion::Http3),
            ("https://:/", HttpVersion::Http3),
            ("https://host:x/", HttpVersion::Http3),
            ("https://host:99999/", HttpVersion::Http3),
            ("https://host:+1/", HttpVersion::Http3),
            ("https://[::1]:-1/", HttpVersion::Http3),
            ("https://host/a b", HttpVersion::Http3),
            ("ftp://example.org", HttpVersion::Http3),
            ("https://example.org", HttpVersion::Http11Cleartext),
            ("https://me@example.org", HttpVersion::Http2),
        ] {
            assert!(
                matches!(
                    parse(url, version),
                    Err(ClientError::Url { .. } | ClientError::Scheme { .. })
                ),
                "{url}"
            );
        }
    }
}
