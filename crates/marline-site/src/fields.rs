//! Rules for the fields of requests and responses.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, ORIGIN, STRICT_TRANSPORT_SECURITY,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use marline::settings::{Pair, text_values};
use marline_http::Body;

use crate::answers::plain;
use crate::template::nginx_variable;

/// Fields that belong to the connection or to the length of content: no rule changes them.
const FIXED: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A change of fields: `NAME` sets one, `+NAME` adds one, `-NAME` removes those of this name, where the name may end with `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Set(HeaderName, HeaderValue),
    Add(HeaderName, HeaderValue),
    Remove(String),
}

impl Change {
    fn read(pair: &Pair) -> Result<Self, String> {
        let named = |text: &str| {
            let name = HeaderName::from_str(text)
                .map_err(|_| "this is not an HTTP field name".to_owned())?;
            match FIXED.contains(&name) {
                true => Err("this field is the server's own".to_owned()),
                false => Ok(name),
            }
        };
        if let Some(text) = pair.name.strip_prefix('-') {
            let begin = text.strip_suffix('*').unwrap_or(text);
            if begin.is_empty() && text == "*" {
                return Err("this would remove all fields; name the beginning of some".to_owned());
            }
            // A beginning has the characters of a name.
            named(begin)?;
            if !pair.text.is_empty() {
                return Err("a field that is removed has no value; write \"\"".to_owned());
            }
            return Ok(Self::Remove(text.to_ascii_lowercase()));
        }
        let (adds, text) = match pair.name.strip_prefix('+') {
            Some(text) => (true, text),
            None => (false, pair.name.as_str()),
        };
        let name = named(text)?;
        if let Some((variable, _)) = nginx_variable(&pair.text) {
            return Err(format!(
                "{variable} is a variable of nginx, and values are fixed texts here; applications get Host, X-Forwarded-For and X-Forwarded-Proto in any case"
            ));
        }
        let value = HeaderValue::from_str(&pair.text)
            .map_err(|_| "this is not an HTTP field value".to_owned())?;
        Ok(match adds {
            true => Self::Add(name, value),
            false => Self::Set(name, value),
        })
    }

    fn apply(&self, headers: &mut HeaderMap) {
        match self {
            Self::Set(name, value) => {
                headers.insert(name.clone(), value.clone());
            }
            Self::Add(name, value) => {
                headers.append(name.clone(), value.clone());
            }
            Self::Remove(text) => match text.strip_suffix('*') {
                None => {
                    headers.remove(text.as_str());
                }
                Some(begin) => {
                    let names: Vec<_> = headers
                        .keys()
                        .filter(|name| name.as_str().starts_with(begin) && !FIXED.contains(name))
                        .cloned()
                        .collect();
                    for name in names {
                        headers.remove(name);
                    }
                }
            },
        }
    }
}

/// Checks a pair of `request_headers` or `response_headers`.
pub(crate) fn check(pair: &Pair) -> Result<(), String> {
    Change::read(pair).map(|_| ())
}

/// Changes of fields, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    /// Those of checked pairs.
    pub(crate) fn of(pairs: &[Pair]) -> Self {
        Self(
            pairs
                .iter()
                .filter_map(|pair| Change::read(pair).ok())
                .collect(),
        )
    }

    /// Applies them to `headers`.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        for change in &self.0 {
            change.apply(headers);
        }
    }

    /// Applies them to `headers` of a request.
    pub(crate) fn apply_to_request(&self, headers: &mut HeaderMap) {
        if !self.0.is_empty() {
            end_listed(headers);
            self.apply(headers);
        }
    }
}

/// Options of `Connection` that are not names of fields a rule may set.
const OPTIONS: [&str; 4] = ["close", "keep-alive", "te", "upgrade"];

/// Removes the fields that `Connection` lists (RFC 9110, section 7.6.1), and their names there: otherwise a client could have
/// a field removed behind a rule that sets it.
fn end_listed(headers: &mut HeaderMap) {
    let listed = headers.get_all(CONNECTION).iter();
    let listed = listed.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = listed.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    let (options, fields): (Vec<_>, Vec<_>) =
        names.partition(|name| OPTIONS.contains(&name.as_str()));
    if fields.is_empty() {
        return;
    }
    for name in fields {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
    for option in options {
        if let Ok(value) = HeaderValue::from_str(option.as_str()) {
            headers.append(CONNECTION, value);
        }
    }
}

/// `Strict-Transport-Security` for a time (RFC 6797).
pub(crate) fn hsts(time: Duration) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("max-age={}", time.as_secs())).ok()
}

/// Adds `hsts` to a response that has none.
pub(crate) fn add_hsts(hsts: Option<&HeaderValue>, headers: &mut HeaderMap) {
    if let Some(hsts) = hsts {
        let entry = headers.entry(STRICT_TRANSPORT_SECURITY);
        entry.or_insert_with(|| hsts.clone());
    }
}

/// An origin whose scripts may read responses, as browsers send it, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// A text is not an [`Origin`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an origin; write a scheme and a host, as https://app.example.org, or * for all"
)]
pub struct InvalidOrigin(String);

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let is_origin = || {
            let (scheme, authority) = text.split_once("://")?;
            let host: Authority = authority.parse().ok()?;
            let is_host = !host.host().is_empty() && !authority.contains('@');
            // As browsers send it.
            let is_plain = !text.contains(|c: char| c.is_ascii_uppercase());
            (is_host && is_plain && scheme.parse::<Scheme>().is_ok()).then_some(())
        };
        match text == "*" || is_origin().is_some() {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidOrigin(text.to_owned())),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_values!(Origin);

/// The origins whose scripts may read responses (the CORS protocol of the Fetch standard).
#[derive(Clone, Debug, Default)]
pub(crate) struct Cors {
    any: bool,
    origins: Vec<HeaderValue>,
}

impl Cors {
    /// Those of `origins`, of which `*` is any.
    pub(crate) fn new(origins: &[Origin]) -> Self {
        Self {
            any: origins.iter().any(|origin| origin.0 == "*"),
            origins: origins
                .iter()
                .filter_map(|origin| HeaderValue::try_from(&origin.0).ok())
                .collect(),
        }
    }

    fn allows(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        match self.any {
            true => Some(HeaderValue::from_static("*")),
            false => self.origins.contains(origin).then(|| origin.clone()),
        }
    }

    /// The response to a preflight request, if `request` is one from an origin that is allowed.
    pub(crate) fn preflight(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let asked = request.headers();
        let method = asked.get(ACCESS_CONTROL_REQUEST_METHOD)?;
        if *request.method() != Method::OPTIONS {
            return None;
        }
        let origin = self.allows(asked)?;
        let mut response = plain(StatusCode::NO_CONTENT, "");
        let headers = response.headers_mut();
        headers.clear();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method.clone());
        if let Some(fields) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fields.clone());
        }
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        Some(response)
    }

    /// The fields about the origin of a request with `asked`.
    pub(crate) fn answer(&self, asked: &HeaderMap) -> CorsAnswer {
        CorsAnswer {
            origin: self.allows(asked),
            varies: !self.any && !self.origins.is_empty(),
        }
    }
}

/// The fields of a response about the origin of its request.
#[derive(Clone, Debug)]
pub(crate) struct CorsAnswer {
    origin: Option<HeaderValue>,
    varies: bool,
}

impl CorsAnswer {
    /// Adds it to a response.
    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        if self.varies {
            headers.append(VARY, HeaderValue::from_name(ORIGIN));
        }
        if let Some(origin) = self.origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, text: &str) -> Pair {
        Pair {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn an_origin_has_scheme_and_host_alone() {
        for text in ["*", "https://app.example.org", "http://localhost:3000"] {
            assert!(text.parse::<Origin>().is_ok(), "{text}");
        }
        for text in [
            "app.example.org",
            "https://app.example.org/",
            "https://App.example.org",
            "https://",
            "https://user@example.org",
            "null",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }

    #[test]
    fn fields_are_set_added_and_removed() {
        let pairs = [
            pair("X-Frame-Options", "DENY"),
            pair("+Vary", "accept"),
            pair("-server", ""),
            pair("-X-Internal-*", ""),
        ];
        assert!(pairs.iter().all(|pair| check(pair).is_ok()));
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-frame-options", "ALLOW"),
            ("vary", "origin"),
            ("server", "app"),
            ("x-internal-a", "1"),
            ("x-internal-b", "2"),
            ("x-other", "3"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Changes::of(&pairs).apply(&mut headers);
        assert_eq!(headers["x-frame-options"], "DENY");
        assert_eq!(headers.get_all(VARY).iter().count(), 2);
        assert_eq!(headers.len(), 4, "{headers:?}");
        assert_eq!(headers["x-other"], "3");
    }

    #[test]
    fn a_client_cannot_have_a_field_removed_that_a_rule_sets() {
        let mut headers = HeaderMap::new();
        let lists = ["upgrade, X-Role", "x-other,, Keep-Alive"];
        for list in lists {
            headers.append(CONNECTION, HeaderValue::from_static(list));
        }
        headers.insert("x-other", HeaderValue::from_static("1"));
        Changes::of(&[pair("X-Role", "user")]).apply_to_request(&mut headers);
        assert_eq!(headers["x-role"], "user");
        assert!(!headers.contains_key("x-other"));
        let options: Vec<_> = headers.get_all(CONNECTION).iter().collect();
        assert_eq!(options, ["upgrade", "keep-alive"]);
    }

    #[test]
    fn what_no_rule_may_change_is_refused() {
        for (name, text) in [
            ("a b", "1"),
            ("Content-Length", "1"),
            ("-Transfer-Encoding", ""),
            ("-*", ""),
            ("-x", "1"),
            ("x", "a\r\nb: c"),
            ("", "x"),
        ] {
            assert!(check(&pair(name, text)).is_err(), "{name}");
        }
    }

    #[test]
    fn an_origin_is_allowed_by_name() {
        let cors = Cors::new(&["https://a.example".parse().unwrap()]);
        let request = |method: Method, origin: &'static str, asks: Option<&'static str>| {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            let headers = request.headers_mut();
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            if let Some(asks) = asks {
                let asks = HeaderValue::from_static(asks);
                headers.insert(ACCESS_CONTROL_REQUEST_METHOD, asks);
            }
            request
        };
        let preflight = request(Method::OPTIONS, "https://a.example", Some("PUT"));
        let response = cors.preflight(&preflight).unwrap();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert_eq!(response.headers()[ACCESS_CONTROL_ALLOW_METHODS], "PUT");
        let other = request(Method::OPTIONS, "https://b.example", Some("PUT"));
        assert!(cors.preflight(&other).is_none());
        let plain = request(Method::GET, "https://a.example", None);
        assert!(cors.preflight(&plain).is_none());
        let mut headers = HeaderMap::new();
        cors.answer(plain.headers()).apply(&mut headers);
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "https://a.example");
        assert_eq!(headers[VARY], "origin");
        let mut headers = HeaderMap::new();
        Cors::new(&[]).answer(plain.headers()).apply(&mut headers);
        assert!(headers.is_empty());
    }
}
