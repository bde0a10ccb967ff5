//! Proxies in front of a server, which report the addresses of its clients.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use http::header::{FORWARDED, HeaderMap, HeaderName};
use marline::settings::text_values;

use crate::networks::Network;

/// The address of a client that a trusted proxy hides, or reports in a way that cannot be read: it is in no network of anybody.
const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The extension of a request that has the address of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    address: SocketAddr,
    /// The trusted proxy that has reported it.
    proxy: Option<SocketAddr>,
    /// The scheme that the client used, as that proxy reports it.
    scheme: Option<&'static str>,
}

impl ClientAddress {
    /// `address`, for sites that are called without a server. One socket may take both families: an IPv4 address in IPv6
    /// notation is that IPv4 address.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address: canonical(address),
            proxy: None,
            scheme: None,
        }
    }

    /// The address. Its port is 0 if a trusted proxy has reported it without one, and it is 0.0.0.0 if that proxy hides it.
    pub fn get(self) -> SocketAddr {
        self.address
    }

    /// The trusted proxy that has sent the request, if one has.
    pub fn proxy(self) -> Option<SocketAddr> {
        self.proxy
    }

    /// The scheme of the client's request, if a trusted proxy reports it.
    pub(crate) fn scheme(self) -> Option<&'static str> {
        self.scheme
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The proxies that are trusted about the addresses of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Their networks; with none, no proxy is trusted.
    pub networks: Vec<Network>,
    /// The field in which they report clients.
    pub field: ClientField,
    /// Whether their connections over TCP begin with a header of the PROXY protocol, version 1 or 2.
    pub proxy_protocol: bool,
}

impl TrustedProxies {
    /// Whether `address` is that of a trusted proxy.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|one| one.contains(address))
    }

    /// Whether connections from `address` begin with a header of the PROXY protocol.
    pub(super) fn announce(&self, address: IpAddr) -> bool {
        self.proxy_protocol && self.has(address)
    }

    /// The client of a request with the fields `headers` that came from `peer`: the last one reported that is not a trusted proxy.
    pub(super) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> ClientAddress {
        let peer = canonical(peer);
        if !self.has(peer.ip()) {
            return ClientAddress::new(peer);
        }
        let mut address = peer;
        for reported in self.field.reported(headers) {
            let Some(reported) = reported else {
                address = UNKNOWN;
                break;
            };
            address = canonical(reported);
            if !self.has(address.ip()) {
                break;
            }
        }
        ClientAddress {
            address,
            proxy: Some(peer),
            scheme: self.field.scheme(headers),
        }
    }
}

/// The field in which trusted proxies report clients: `Forwarded` (RFC 7239), or one with a list of addresses to which each
/// proxy appends, as `X-Forwarded-For`, or with one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientField(HeaderName);

impl ClientField {
    /// The addresses reported, from the last; `None` for one that is hidden or malformed, and for a whole field that cannot be read:
    /// what precedes it is not to be trusted.
    fn reported(&self, headers: &HeaderMap) -> impl Iterator<Item = Option<SocketAddr>> {
        let is_forwarded = self.0 == FORWARDED;
        let values: Vec<_> = headers.get_all(&self.0).into_iter().collect();
        values.into_iter().rev().flat_map(move |value| {
            let mut found: Vec<_> = match is_forwarded {
                true => match value.to_str().ok().and_then(members) {
                    Some(members) => {
                        let members = members.into_iter();
                        members
                            .map(|member| address(parameter(member, "for")?))
                            .collect()
                    }
                    None => vec![None],
                },
                // Lists of addresses have no quotes: a client that writes one hides nothing that follows.
                false => {
                    let members = value.as_bytes().split(|byte| *byte == b',');
                    members
                        .map(|member| address(str::from_utf8(member).ok()?.trim()))
                        .collect()
                }
            };
            found.reverse();
            found
        })
    }

    /// The scheme that the last proxy reports beside the address.
    fn scheme(&self, headers: &HeaderMap) -> Option<&'static str> {
        let last = |name| {
            let value = headers.get_all(name).into_iter().next_back()?;
            members(value.to_str().ok()?)?.pop()
        };
        let scheme = match self.0 == FORWARDED {
            true => parameter(last(&FORWARDED)?, "proto")?,
            false => last(&X_FORWARDED_PROTO)?,
        };
        ["http", "https"]
            .into_iter()
            .find(|known| scheme.eq_ignore_ascii_case(known))
    }
}

impl Default for ClientField {
    fn default() -> Self {
        Self(HeaderName::from_static("x-forwarded-for"))
    }
}

impl fmt::Display for ClientField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ClientField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = HeaderName::from_bytes(text.as_bytes());
        name.map(Self)
            .map_err(|_| format!("{text:?} is not the name of a field"))
    }
}

text_values!(ClientField);

/// The members of a list whose members may have quoted strings (RFC 9110, sections 5.6.1 and 5.6.4). `None` if one has no end.
fn members(list: &str) -> Option<Vec<&str>> {
    split(list, ',')
}

/// Splits `text` at `separator`, but for those in quoted strings. `None` if one has no end.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(|c| match c {
        _ if is_escaped => {
            is_escaped = false;
            false
        }
        '\\' if is_quoted => {
            is_escaped = true;
            false
        }
        '"' => {
            is_quoted = !is_quoted;
            false
        }
        c => c == separator && !is_quoted,
    });
    let parts: Vec<_> = parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    (!is_quoted).then_some(parts)
}

/// The parameter `name` of an element of `Forwarded` (RFC 7239, section 4), without quotes.
fn parameter<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let value = split(element, ';')?.into_iter().find_map(|pair| {
        let (found, value) = pair.split_once('=')?;
        let is_found = found.trim().eq_ignore_ascii_case(name);
        is_found.then_some(value.trim())
    })?;
    let inner = value.strip_prefix('"');
    let inner = inner.and_then(|inner| inner.strip_suffix('"'));
    Some(inner.unwrap_or(value))
}

/// An address with or without port and brackets. Without a port, that is 0.
fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let inner = text.strip_prefix('[');
    let inner = inner.and_then(|inner| inner.strip_suffix(']'));
    let ip: IpAddr = inner.unwrap_or(text).parse().ok()?;
    Some(SocketAddr::new(ip, 0))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(trusted: &TrustedProxies, peer: &str, name: &'static str, values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let peer = peer.parse().unwrap();
        trusted.client(peer, &headers).get().to_string()
    }

    fn trusted(field: &str) -> TrustedProxies {
        TrustedProxies {
            networks: vec![
                "10.0.0.0/8".parse().unwrap(),
                "2001:db8::/64".parse().unwrap(),
            ],
            field: field.parse().unwrap(),
            proxy_protocol: false,
        }
    }

    #[test]
    fn only_trusted_proxies_report_clients() {
        let trusted = trusted("X-Forwarded-For");
        for (peer, values, expected) in [
            ("10.0.0.1:5", &["192.0.2.1"][..], "192.0.2.1:0"),
            ("[::ffff:10.0.0.1]:5", &["192.0.2.1"], "192.0.2.1:0"),
            ("[2001:db8::1]:5", &["2001:db8:1::1"], "[2001:db8:1::1]:0"),
            ("192.0.2.9:5", &["192.0.2.1"], "192.0.2.9:5"),
            ("10.0.0.1:5", &[], "10.0.0.1:5"),
            // The client has written the first one itself.
            ("10.0.0.1:5", &["198.51.100.1, 192.0.2.1"], "192.0.2.1:0"),
            (
                "10.0.0.1:5",
                &["198.51.100.1", "192.0.2.1:80, 10.0.0.2"],
                "192.0.2.1:80",
            ),
            // All are trusted: the first one is furthest.
            ("10.0.0.1:5", &["10.0.0.3, 10.0.0.2"], "10.0.0.3:0"),
            ("10.0.0.1:5", &["192.0.2.1, unknown"], "0.0.0.0:0"),
            ("10.0.0.1:5", &["192.0.2.1, unknown, 10.0.0.2"], "0.0.0.0:0"),
            // A client that writes an open quote hides nothing that its proxy appends.
            ("10.0.0.1:5", &["\", 198.51.100.7"], "198.51.100.7:0"),
            ("10.0.0.1:5", &["10.0.0.9", "x\", 10.0.0.2"], "0.0.0.0:0"),
            // Nor one that writes bytes that are not text.
            ("10.0.0.1:5", &["\u{e9}, 198.51.100.7"], "198.51.100.7:0"),
            ("10.0.0.1:5", &["10.0.0.9", "\u{e9}"], "0.0.0.0:0"),
            ("10.0.0.1:5", &["198.51.100.7 evil"], "0.0.0.0:0"),
        ] {
            let found = client(&trusted, peer, "x-forwarded-for", values);
            assert_eq!(found, expected, "{peer} {values:?}");
        }
        let found = client(&trusted, "10.0.0.1:5", "forwarded", &["for=192.0.2.1"]);
        assert_eq!(found, "10.0.0.1:5", "proxies may not set it");
    }

    #[test]
    fn the_scheme_is_that_of_the_last_proxy() {
        for (field, name, value, expected) in [
            (
                "x-forwarded-for",
                "x-forwarded-proto",
                "http, HTTPS",
                Some("https"),
            ),
            ("x-forwarded-for", "x-forwarded-proto", "gopher", None),
            ("x-forwarded-for", "forwarded", "proto=http", None),
            (
                "forwarded",
                "forwarded",
                "proto=https, for=a;proto=http",
                Some("http"),
            ),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            let peer = "10.0.0.1:5".parse().unwrap();
            let client = trusted(field).client(peer, &headers);
            assert_eq!(client.scheme(), expected, "{field} {value}");
            let peer = "192.0.2.9:5".parse().unwrap();
            assert_eq!(trusted(field).client(peer, &headers).scheme(), None);
        }
    }

    #[test]
    fn forwarded_is_read_with_its_quotes() {
        let trusted = trusted("Forwarded");
        for (value, expected) in [
            ("for=192.0.2.1;proto=https", "192.0.2.1:0"),
            (
                "proto=http; For=\"[2001:db8:1::1]:47011\"",
                "[2001:db8:1::1]:47011",
            ),
            (
                "for=192.0.2.1, for=10.0.0.2;by=\"a,for=203.0.113.1\"",
                "192.0.2.1:0",
            ),
            (
                "for=192.0.2.1;host=\"\\\", for=203.0.113.1\"",
                "192.0.2.1:0",
            ),
            ("for=_hidden", "0.0.0.0:0"),
            ("by=192.0.2.1", "0.0.0.0:0"),
            // An open quote of a client, before what its proxy appends.
            ("for=\"x, for=198.51.100.7", "0.0.0.0:0"),
            (
                "for=10.0.0.9, for=\"x, for=\"[2001:db8:1::1]\"",
                "0.0.0.0:0",
            ),
        ] {
            let found = client(&trusted, "10.0.0.1:5", "forwarded", &[value]);
            assert_eq!(found, expected, "{value}");
        }
    }
}
