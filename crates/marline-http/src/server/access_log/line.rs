//! The lines of an access log, in each of its formats.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, REFERER, USER_AGENT};
use http::{Method, Request, Version};
use serde::Serialize;

use super::AccessLogFormat;
use crate::log::utc;

/// The parts of a request that a log has.
#[derive(Debug, Default)]
pub(in crate::server) struct RequestLine {
    method: Method,
    /// The target as in the request line of HTTP/1.1.
    target: String,
    path: String,
    query: Option<String>,
    host: Option<String>,
    referer: Option<String>,
    user_agent: Option<String>,
    user: Option<String>,
}

impl RequestLine {
    /// Those of `request`.
    pub(in crate::server) fn of<B>(request: &Request<B>) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        let target = match (request.method(), uri.path_and_query()) {
            (&Method::CONNECT, _) | (_, None) => uri.to_string(),
            (_, Some(target)) => target.to_string(),
        };
        let authority = uri
            .authority()
            .map(|authority| authority.as_str().to_owned());
        Self {
            method: request.method().clone(),
            target,
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
            host: authority.or_else(|| text_of(headers, HOST)),
            referer: text_of(headers, REFERER),
            user_agent: text_of(headers, USER_AGENT),
            user: user_of(headers),
        }
    }
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The name that a client claims by basic authentication (RFC 7617).
fn user_of(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, encoded) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let pair = STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = pair.iter().position(|&byte| byte == b':')?;
    Some(String::from_utf8_lossy(&pair[..colon]).into_owned())
}

/// A line. The names of its fields are a stable interface, except `complete`.
#[derive(Serialize)]
pub(in crate::server) struct Line<'a> {
    /// Seconds since 1970, when the request's header had arrived.
    pub(in crate::server) time: f64,
    pub(in crate::server) client: SocketAddr,
    /// `None` if the request could not be read.
    #[serde(flatten, serialize_with = "request_fields")]
    pub(in crate::server) request: Option<&'a RequestLine>,
    /// `None` if a malformed request was answered with a reset of its stream, or if its client or connection was lost before
    /// the response.
    pub(in crate::server) status: Option<u16>,
    /// Bytes of content that the client has acknowledged.
    pub(in crate::server) bytes: u64,
    #[serde(serialize_with = "version_name")]
    pub(in crate::server) http_version: Version,
    pub(in crate::server) connection: &'a str,
    /// The subject of the client's certificate, if it has presented one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) client_subject: Option<&'a str>,
    /// The SHA-256 of that certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) client_fingerprint: Option<&'a str>,
    /// The number of the QUIC connection's bundle in this process, if it has one.
    pub(in crate::server) bundle: Option<u64>,
    /// The initial window of the QUIC connection's path, in bytes.
    pub(in crate::server) initial_window: Option<u64>,
    /// The paths that the QUIC connection has, including recently closed ones.
    pub(in crate::server) paths: Option<usize>,
    /// From the request's header until the client has acknowledged the response, or will not.
    pub(in crate::server) duration_s: f64,
    /// Whether the client has acknowledged the whole response.
    pub(in crate::server) complete: bool,
    /// The source of the response, if the request was passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) upstream: Option<&'a str>,
    /// The reason why that source gave no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) upstream_error: Option<&'a str>,
    /// The pipe that carried the response, from 0, if the request was passed on over a pool of pipes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) pipe: Option<usize>,
    /// The site that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) site: Option<&'a str>,
    /// Its route, if one fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) route: Option<&'a str>,
    /// The reason why the server refused the request itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) reason: Option<&'static str>,
}

/// The fields of a request in JSON.
#[derive(Default, Serialize)]
struct RequestFields<'a> {
    method: Option<&'a str>,
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    referer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
}

fn request_fields<S: serde::Serializer>(
    request: &Option<&RequestLine>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let fields = request.map_or_else(RequestFields::default, |request| RequestFields {
        method: Some(request.method.as_str()),
        path: Some(&request.path),
        query: request.query.as_deref(),
        host: request.host.as_deref(),
        referer: request.referer.as_deref(),
        user_agent: request.user_agent.as_deref(),
        user: request.user.as_deref(),
    });
    fields.serialize(serializer)
}

fn version_name<S: serde::Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(crate::server::metrics::version_name(*version))
}

/// The status of a request that had no response because its client was gone, as in logs of nginx.
const CLIENT_GONE: u16 = 499;

/// The status of a request that could not be read, and whose stream was reset.
const UNREADABLE: u16 = 400;

/// The names of months in these formats.
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl Line<'_> {
    /// The line without its end.
    pub(super) fn text(&self, format: AccessLogFormat) -> Option<Vec<u8>> {
        let is_combined = match format {
            AccessLogFormat::Json => return serde_json::to_vec(self).ok(),
            AccessLogFormat::Common => false,
            AccessLogFormat::Combined => true,
        };
        let mut text = String::with_capacity(256);
        text.push_str(&self.client.ip().to_string());
        text.push_str(" - ");
        let request = self.request;
        let user = request.and_then(|request| request.user.as_deref());
        match user {
            None => text.push('-'),
            Some("") => text.push_str("\"\""),
            // A blank would shift the fields after it.
            Some(user) => escape(&mut text, user, b" "),
        }
        let time = utc(self.time);
        text.push_str(&format!(
            " [{:02}/{}/{:04}:{:02}:{:02}:{:02} +0000] \"",
            time.day(),
            MONTHS[usize::from(u8::from(time.month())) - 1],
            time.year(),
            time.hour(),
            time.minute(),
            time.second()
        ));
        match request {
            None => text.push('-'),
            Some(request) => {
                escape(&mut text, request.method.as_str(), b"");
                text.push(' ');
                escape(&mut text, &request.target, b"");
                text.push(' ');
                text.push_str(protocol(self.http_version));
            }
        }
        let status = match (self.status, request) {
            (Some(status), _) => status,
            (None, Some(_)) => CLIENT_GONE,
            (None, None) => UNREADABLE,
        };
        text.push_str(&format!("\" {status} {}", self.bytes));
        if is_combined {
            let referer = request.and_then(|request| request.referer.as_deref());
            let user_agent = request.and_then(|request| request.user_agent.as_deref());
            for value in [referer, user_agent] {
                text.push_str(" \"");
                escape(&mut text, value.unwrap_or("-"), b"");
                text.push('"');
            }
        }
        Some(text.into_bytes())
    }
}

/// The version as in a request line.
fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// Appends `value` as Apache escapes it: quotes and backslashes with a backslash, everything but printable ASCII, and the bytes
/// of `also`, as `\xhh`. Thus no value ends its field or its line.
fn escape(text: &mut String, value: &str, also: &[u8]) {
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' if !also.contains(&byte) => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: Option<&RequestLine>) -> Line<'_> {
        Line {
            time: 971_211_336.0,
            client: ([192, 0, 2, 7], 4000).into(),
            request,
            status: Some(200),
            bytes: 2326,
            http_version: Version::HTTP_3,
            connection: "tcp-1",
            client_subject: None,
            client_fingerprint: None,
            bundle: None,
            initial_window: None,
            paths: None,
            duration_s: 0.5,
            complete: true,
            upstream: None,
            upstream_error: None,
            pipe: None,
            site: None,
            route: None,
            reason: None,
        }
    }

    fn text(line: &Line<'_>, format: AccessLogFormat) -> String {
        String::from_utf8(line.text(format).unwrap()).unwrap()
    }

    fn request(fields: &[(&str, &[u8])]) -> RequestLine {
        let mut request = Request::get("https://example.org/apache_pb.gif?a=%22");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        RequestLine::of(&request.body(()).unwrap())
    }

    #[test]
    fn common_and_combined_are_those_of_apache() {
        let request = request(&[
            ("authorization", b"Basic ZnJhbms6c2VjcmV0"),
            ("referer", b"http://example.org/start.html"),
            ("user-agent", b"Mozilla/4.08 [en]"),
        ]);
        let line = line(Some(&request));
        let common = "192.0.2.7 - frank [10/Oct/2000:20:55:36 +0000] \"GET /apache_pb.gif?a=%22 HTTP/3.0\" 200 2326";
        assert_eq!(text(&line, AccessLogFormat::Common), common);
        assert_eq!(
            text(&line, AccessLogFormat::Combined),
            format!("{common} \"http://example.org/start.html\" \"Mozilla/4.08 [en]\"")
        );
    }

    #[test]
    fn json_has_the_same_fields_and_never_the_password() {
        let request = request(&[
            ("authorization", b"Basic ZnJhbms6c2VjcmV0"),
            ("referer", b"http://example.org/start.html"),
            ("user-agent", b"Mozilla/4.08 [en]"),
        ]);
        let text = text(&line(Some(&request)), AccessLogFormat::Json);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (name, expected) in [
            ("method", "GET"),
            ("path", "/apache_pb.gif"),
            ("query", "a=%22"),
            ("host", "example.org"),
            ("referer", "http://example.org/start.html"),
            ("user_agent", "Mozilla/4.08 [en]"),
            ("user", "frank"),
            ("http_version", "3"),
        ] {
            assert_eq!(json[name], expected, "{text}");
        }
        assert!(!text.contains("secret") && !text.contains("ZnJhbms6c2VjcmV0"));
    }

    #[test]
    fn no_request_forges_a_line_or_a_field() {
        let forged = b"x\" 200 1 \"\\\xc3\xa9\t-";
        // "a b\n192.0.2.1:"
        let authorization = b"Basic YSBiCjE5Mi4wLjIuMTo=";
        let request = request(&[("user-agent", forged), ("authorization", authorization)]);
        let line = line(Some(&request));
        for format in [AccessLogFormat::Json, AccessLogFormat::Combined] {
            assert!(!text(&line, format).contains(['\n', '\r']));
        }
        let text = text(&line, AccessLogFormat::Combined);
        assert!(
            text.starts_with("192.0.2.7 - a\\x20b\\n192.0.2.1 ["),
            "{text}"
        );
        assert!(
            text.ends_with(r#" "-" "x\" 200 1 \"\\\xc3\xa9\t-""#),
            "{text}"
        );
    }

    #[test]
    fn what_could_not_be_read_or_answered_has_a_line_of_the_same_form() {
        let mut unread = line(None);
        unread.status = None;
        assert!(text(&unread, AccessLogFormat::Combined).ends_with("\"-\" 400 2326 \"-\" \"-\""));
        let json = text(&unread, AccessLogFormat::Json);
        assert!(
            json.contains("\"method\":null,\"path\":null,\"status\":null"),
            "{json}"
        );
        let request = request(&[]);
        let mut unanswered = line(Some(&request));
        unanswered.status = None;
        assert!(text(&unanswered, AccessLogFormat::Common).contains(" 499 "));
    }
}
