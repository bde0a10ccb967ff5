//! Header fields on their way through a proxy (RFC 9110, section 7.6; RFC 7239).

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    AGE, ALT_SVC, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, COOKIE, DATE, EXPECT, EXPIRES, FORWARDED, HOST,
    HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LOCATION, MAX_FORWARDS, ORIGIN, PRAGMA, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, RANGE, RETRY_AFTER, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    VARY, VIA, WARNING, WWW_AUTHENTICATE,
};
use http::{Request, Response, Version};

use super::config::{ClientFields, ForwardedFields};
use crate::limits;
use crate::server::ClientCertificate;

/// The name of this proxy in `Via`.
const PSEUDONYM: &str = "marline";

/// Whether a request may be a replay (RFC 8470, section 5.1).
pub(super) const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");
const PROXY: HeaderName = HeaderName::from_static("proxy");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Fields beside `X-Forwarded-*` by which a client may make claims about itself that applications trust.
const CLAIMS: [HeaderName; 8] = [
    FORWARDED,
    HeaderName::from_static("front-end-https"),
    HeaderName::from_static("x-url-scheme"),
    HeaderName::from_static("x-client-ip"),
    HeaderName::from_static("x-cluster-client-ip"),
    HeaderName::from_static("cf-connecting-ip"),
    HeaderName::from_static("true-client-ip"),
    HeaderName::from_static("x-real-ip"),
];

/// Whether a client may make claims about itself by this field; [`REWRITES`] are treated on their own.
pub(super) fn is_claim(name: &HeaderName) -> bool {
    let is_forwarded = name.as_str().starts_with("x-forwarded") && !REWRITES.contains(name);
    is_forwarded || CLAIMS.contains(name)
}

/// The certificate of the client (RFC 9440, section 2.2), with its subject, number and hash in fields of their own.
const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");
const CLIENT_SUBJECT: HeaderName = HeaderName::from_static("x-client-cert-subject");
const CLIENT_SERIAL: HeaderName = HeaderName::from_static("x-client-cert-serial");
const CLIENT_FINGERPRINT: HeaderName = HeaderName::from_static("x-client-cert-sha256");

/// Fields about the certificate of the client, which this proxy alone may write.
const CLIENT_CERTIFICATE: [HeaderName; 5] = [
    CLIENT_CERT,
    HeaderName::from_static("client-cert-chain"),
    CLIENT_SUBJECT,
    CLIENT_SERIAL,
    CLIENT_FINGERPRINT,
];

/// Replaces what a client says of its certificate by what was verified.
pub(super) fn set_client_certificate(
    headers: &mut HeaderMap,
    certificate: Option<&ClientCertificate>,
) {
    CLIENT_CERTIFICATE
        .iter()
        .for_each(|name| drop(headers.remove(name)));
    let Some(certificate) = certificate else {
        return;
    };
    // A byte sequence of RFC 8941.
    let encoded = format!(":{}:", STANDARD.encode(certificate.der()));
    for (name, value) in [
        (CLIENT_CERT, encoded.as_str()),
        (CLIENT_SUBJECT, certificate.subject()),
        (CLIENT_SERIAL, certificate.serial()),
        (CLIENT_FINGERPRINT, certificate.fingerprint()),
    ] {
        // All are in ASCII.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// Fields by which a client may name another path, host or method than its request has.
pub(super) const REWRITES: [HeaderName; 16] = [
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-original-uri"),
    HeaderName::from_static("x-original-host"),
    HeaderName::from_static("x-rewrite-url"),
    HeaderName::from_static("x-http-destinationurl"),
    HeaderName::from_static("x-http-path-override"),
    HeaderName::from_static("x-http-host-override"),
    HeaderName::from_static("x-envoy-original-path"),
    HeaderName::from_static("x-waws-unencoded-url"),
    HeaderName::from_static("x-override-url"),
    HeaderName::from_static("x-forwarded-path"),
    HeaderName::from_static("x-forwarded-uri"),
    HeaderName::from_static("x-host"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
];

/// Fields that must not be in trailers: fields about framing, routing, authentication and content, and those that change how a message is
/// processed (RFC 9110, section 6.5.1).
const NOT_IN_TRAILERS: [HeaderName; 36] = [
    CONTENT_LENGTH,
    HOST,
    TRAILER,
    EARLY_DATA,
    AGE,
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LOCATION,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    DATE,
    EXPECT,
    EXPIRES,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    LOCATION,
    MAX_FORWARDS,
    ORIGIN,
    PRAGMA,
    RANGE,
    RETRY_AFTER,
    SET_COOKIE,
    VARY,
    VIA,
    WARNING,
    WWW_AUTHENTICATE,
    ALT_SVC,
    HeaderName::from_static("x-accel-redirect"),
    HeaderName::from_static("x-sendfile"),
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("authentication-info"),
];

/// Fields that stay although `Connection` lists them: they are about the message, and its meaning depends on them.
const ESSENTIAL: [HeaderName; 2] = [CONTENT_LENGTH, HOST];

/// The properties of a request before its fields are changed.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) client: Option<SocketAddr>,
    pub(super) version: Version,
    /// Host and port that the request is for, if it has them.
    pub(super) host: Option<HeaderValue>,
    /// The scheme that the client used.
    pub(super) scheme: &'static str,
}

impl Received {
    /// Reads it from `request`. An absolute target precedes `Host` (RFC 9112, section 3.2.2).
    pub(super) fn of<B>(
        request: &Request<B>,
        client: Option<SocketAddr>,
        scheme: &'static str,
    ) -> Self {
        let authority = request.uri().authority();
        let host = match authority {
            Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
            None => request.headers().get(HOST).cloned(),
        };
        Self {
            client,
            version: request.version(),
            host,
            scheme,
        }
    }
}

/// Removes the fields that are about one connection (RFC 9110, section 7.6.1). Returns whether the sender accepts trailers.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) -> bool {
    let listed: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| !ESSENTIAL.contains(name))
        .collect();
    let takes_trailers =
        tokens(headers, &TE).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
    for name in listed {
        headers.remove(name);
    }
    for name in [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRANSFER_ENCODING,
        UPGRADE,
    ] {
        headers.remove(name);
    }
    takes_trailers
}

/// A message does not announce a single number as its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidLength;

/// The length that `Content-Length` announces, if present. Equal numbers, of one field or several, become one: servers
/// disagree about lists of them (RFC 9110, section 8.6).
///
/// # Errors
/// They differ, or are not numbers.
pub(super) fn content_length(headers: &mut HeaderMap) -> Result<Option<u64>, InvalidLength> {
    let mut found = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for part in value.as_bytes().split(|byte| *byte == b',') {
            let digits = part.trim_ascii();
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return Err(InvalidLength);
            }
            let digits = str::from_utf8(digits).map_err(|_| InvalidLength)?;
            let number: u64 = digits.parse().map_err(|_| InvalidLength)?;
            if found.replace(number).is_some_and(|other| other != number) {
                return Err(InvalidLength);
            }
        }
    }
    if let Some(length) = found {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    Ok(found)
}

/// The members of the lists in all fields with this name; a parameter after `;` is left out.
fn tokens<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let values = headers.get_all(name).into_iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|member| member.split(|byte| *byte == b';').next())
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Whether a message has a transfer coding that a proxy cannot undo: any other than a single
/// `chunked`.
pub(super) fn has_other_coding(headers: &HeaderMap) -> bool {
    let mut codings = tokens(headers, &TRANSFER_ENCODING);
    let first = codings.next();
    first.is_some_and(|first| !first.eq_ignore_ascii_case(b"chunked")) || codings.next().is_some()
}

/// Removes fields that applications behind CGI and WSGI confuse with others: fields with `_` in their names, which they
/// cannot distinguish from those with `-`, and `Proxy`, which becomes the variable `HTTP_PROXY`.
pub(super) fn remove_ambiguous(headers: &mut HeaderMap) {
    remove_where(headers, |name| name.as_str().contains('_'));
    headers.remove(PROXY);
}

fn remove_where(headers: &mut HeaderMap, is_removed: impl Fn(&HeaderName) -> bool) {
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_removed(name))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// Removes from trailers the fields that are not passed on in headers, and those that are not
/// allowed in trailers.
pub(super) fn clean_trailers(trailers: &mut HeaderMap) {
    remove_hop_by_hop(trailers);
    remove_ambiguous(trailers);
    remove_where(trailers, is_claim);
    for name in CLIENT_CERTIFICATE
        .iter()
        .chain(&REWRITES)
        .chain(&NOT_IN_TRAILERS)
    {
        trailers.remove(name);
    }
}

/// An interim response as a proxy passes it on, if it does: without fields about one connection or about content, as it
/// has none.
pub(super) fn interim(
    mut response: Response<()>,
    version: Version,
    max_bytes: usize,
) -> Option<Response<()>> {
    let headers = response.headers_mut();
    if size(headers) > max_bytes {
        return None;
    }
    remove_hop_by_hop(headers);
    headers.remove(CONTENT_LENGTH);
    add_via(headers, version).ok()?;
    Some(response)
}

/// Bytes of a header, as RFC 9114 section 4.2.2 counts them.
pub(super) fn size(headers: &HeaderMap) -> usize {
    let fields = headers.iter();
    fields
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum()
}

/// A request has passed too many proxies, usually because of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProxyLoop;

/// Adds this proxy to `Via` (RFC 9110, section 7.6.3).
///
/// # Errors
/// [`limits::MAX_VIA`] are there already.
pub(super) fn add_via(headers: &mut HeaderMap, version: Version) -> Result<(), ProxyLoop> {
    if tokens(headers, &VIA).count() >= limits::MAX_VIA {
        return Err(ProxyLoop);
    }
    let version = match version {
        Version::HTTP_3 => "3",
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    if let Ok(value) = HeaderValue::try_from(format!("{version} {PSEUDONYM}")) {
        headers.append(VIA, value);
    }
    Ok(())
}

/// Adds the fields of `how`, which tell the application behind the proxy about the client.
pub(super) fn add_forwarded(
    headers: &mut HeaderMap,
    received: &Received,
    how: ForwardedFields,
    claims: ClientFields,
) {
    if claims == ClientFields::Replace {
        remove_where(headers, is_claim);
    }
    let client = received.client.map(|client| client.ip().to_canonical());
    if how.has_x_forwarded() {
        if let Some(client) = client {
            append_to_list(headers, X_FORWARDED_FOR, &client.to_string());
        }
        // The first proxy sets these; later ones pass them on.
        headers
            .entry(X_FORWARDED_PROTO)
            .or_insert(HeaderValue::from_static(received.scheme));
        if let Some(host) = &received.host {
            headers.entry(X_FORWARDED_HOST).or_insert(host.clone());
        }
    }
    if how.has_forwarded() {
        append_to_list(headers, FORWARDED, &element(received, client));
    }
}

/// The element of `Forwarded` about a request (RFC 7239, section 4).
fn element(received: &Received, client: Option<IpAddr>) -> String {
    let mut text = match client {
        Some(IpAddr::V4(ip)) => format!("for={ip}"),
        Some(IpAddr::V6(ip)) => format!("for=\"[{ip}]\""),
        None => "for=unknown".to_owned(),
    };
    // Hosts are checked before: they have no quotes.
    if let Some(host) = received.host.as_ref().and_then(|host| host.to_str().ok())
        && !host.contains(['"', '\\'])
    {
        // Writing to a String cannot fail.
        let _ = write!(text, ";host=\"{host}\"");
    }
    let _ = write!(text, ";proto={}", received.scheme);
    text
}

/// Appends `member` to the list in the fields `name`, which become one.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, member: &str) {
    let mut list: Vec<u8> = Vec::new();
    for value in headers.get_all(&name) {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(member.as_bytes());
    if let Ok(value) = HeaderValue::try_from(list) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        fields.collect()
    }

    fn received() -> Received {
        Received {
            client: Some(([192, 0, 2, 7], 5000).into()),
            version: Version::HTTP_3,
            host: Some(HeaderValue::from_static("example.org")),
            scheme: "https",
        }
    }

    #[test]
    fn fields_of_the_connection_and_those_it_lists_are_removed() {
        let mut fields = headers(&[
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic eA=="),
            ("te", "gzip;q=1, trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("x-kept", "1"),
        ]);
        assert!(remove_hop_by_hop(&mut fields));
        assert_eq!(fields, headers(&[("x-kept", "1")]));
    }

    #[test]
    fn what_the_message_means_does_not_depend_on_the_fields_that_connection_lists() {
        let mut fields = headers(&[
            ("connection", "content-length, host"),
            ("content-length", "5"),
            ("host", "example.org"),
        ]);
        assert!(!remove_hop_by_hop(&mut fields));
        assert_eq!(fields.len(), 2);
    }

    #[test]
    fn equal_lengths_become_one_and_others_are_invalid() {
        for (values, length) in [
            (&["40, 40"][..], Ok(Some(40))),
            (&["40", "40"], Ok(Some(40))),
            (&["040"], Ok(Some(40))),
            (&[], Ok(None)),
            (&["40", "41"], Err(InvalidLength)),
            (&["40,"], Err(InvalidLength)),
            (&["+40"], Err(InvalidLength)),
            (&["18446744073709551616"], Err(InvalidLength)),
        ] {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            assert_eq!(content_length(&mut fields), length, "{values:?}");
            if let Ok(Some(length)) = length {
                let all: Vec<_> = fields.get_all(CONTENT_LENGTH).iter().collect();
                assert_eq!(all, [&length.to_string()]);
            }
        }
    }

    #[test]
    fn claims_of_a_client_are_replaced_or_continued() {
        let claims = [
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-proto", "http"),
            ("forwarded", "for=10.0.0.1"),
        ];
        let mut fields = headers(&claims);
        let how = ForwardedFields::Both;
        add_forwarded(&mut fields, &received(), how, ClientFields::Replace);
        assert_eq!(fields["x-forwarded-for"], "192.0.2.7");
        assert_eq!(fields["x-forwarded-proto"], "https");
        assert_eq!(fields["x-forwarded-host"], "example.org");
        let element = "for=192.0.2.7;host=\"example.org\";proto=https";
        assert_eq!(fields["forwarded"], element);
        let mut fields = headers(&claims);
        add_forwarded(&mut fields, &received(), how, ClientFields::Append);
        assert_eq!(fields["x-forwarded-for"], "10.0.0.1, 192.0.2.7");
        assert_eq!(fields["x-forwarded-proto"], "http");
        assert_eq!(fields["forwarded"], format!("for=10.0.0.1, {element}"));
    }

    #[test]
    fn without_forwarded_fields_claims_are_removed_all_the_same() {
        let mut fields = headers(&[("x-real-ip", "10.0.0.1")]);
        let how = ForwardedFields::None;
        add_forwarded(&mut fields, &received(), how, ClientFields::Replace);
        assert!(fields.is_empty());
    }

    #[test]
    fn addresses_of_ipv6_are_quoted_and_mapped_ones_are_ipv4() {
        let mut received = received();
        let mut of = |client: &str| {
            received.client = Some(client.parse().unwrap());
            let mut fields = HeaderMap::new();
            let how = ForwardedFields::Forwarded;
            add_forwarded(&mut fields, &received, how, ClientFields::Replace);
            fields["forwarded"].to_str().unwrap().to_owned()
        };
        assert!(of("[2001:db8::1]:1").starts_with("for=\"[2001:db8::1]\";"));
        assert!(of("[::ffff:192.0.2.1]:1").starts_with("for=192.0.2.1;"));
    }

    #[test]
    fn names_that_cgi_confuses_are_removed() {
        let mut fields = headers(&[
            ("x_forwarded_for", "10.0.0.1"),
            ("proxy", "http://evil"),
            ("x-kept", "1"),
        ]);
        remove_ambiguous(&mut fields);
        assert_eq!(fields, headers(&[("x-kept", "1")]));
    }

    #[test]
    fn trailers_have_nothing_about_framing_routing_and_processing() {
        let mut fields = headers(&[
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("host", "b"),
            ("trailer", "x"),
            ("content-type", "text/html"),
            ("set-cookie", "a=1"),
            ("authorization", "Basic eA=="),
            ("cache-control", "public"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-original-url", "/"),
            ("early-data", "1"),
            ("digest", "a"),
            ("server-timing", "db;dur=1"),
            ("grpc-status", "0"),
        ]);
        clean_trailers(&mut fields);
        let kept = [
            ("digest", "a"),
            ("server-timing", "db;dur=1"),
            ("grpc-status", "0"),
        ];
        assert_eq!(fields, headers(&kept));
    }

    #[test]
    fn fields_that_a_list_with_other_bytes_names_are_removed() {
        let mut fields = headers(&[("x-private", "1")]);
        let list = HeaderValue::from_bytes(b"\xe9, x-private").unwrap();
        fields.insert(CONNECTION, list);
        remove_hop_by_hop(&mut fields);
        assert!(fields.is_empty());
    }

    #[test]
    fn trailers_claim_nothing() {
        let mut fields = headers(&[
            ("x-forwarded-for", "10.0.0.1"),
            ("x_real_ip", "10.0.0.1"),
            ("content-length", "5"),
            ("connection", "x-private"),
            ("x-private", "1"),
            ("x-sum", "1"),
        ]);
        clean_trailers(&mut fields);
        assert_eq!(fields, headers(&[("x-sum", "1")]));
    }

    #[test]
    fn transfer_codings_other_than_chunked_are_noticed() {
        for (codings, is_other) in [
            ("chunked", false),
            ("Chunked", false),
            ("gzip, chunked", true),
            ("chunked, chunked", true),
            ("identity", true),
        ] {
            let fields = headers(&[("transfer-encoding", codings)]);
            assert_eq!(has_other_coding(&fields), is_other, "{codings}");
        }
        assert!(!has_other_coding(&HeaderMap::new()));
    }

    #[test]
    fn a_request_that_runs_in_a_circle_is_noticed() {
        let mut fields = HeaderMap::new();
        for _ in 0..limits::MAX_VIA {
            assert_eq!(add_via(&mut fields, Version::HTTP_11), Ok(()));
        }
        assert_eq!(add_via(&mut fields, Version::HTTP_11), Err(ProxyLoop));
    }
}
