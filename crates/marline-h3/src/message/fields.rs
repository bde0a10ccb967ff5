//! The rules for every field section (RFC 9114, sections 4.2 and 4.3).

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING,
    UPGRADE,
};

use crate::error::StreamError;
use crate::qpack::FieldLine;

/// The regular fields of a section; its pseudo-header fields were given to the caller.
pub(super) struct Section {
    pub(super) headers: HeaderMap,
    /// The value of `content-length`, if there is one.
    pub(super) content_length: Option<u64>,
}

impl Section {
    /// Checks fields; `pseudo` gets the name, without the colon, and the value of each pseudo-header field.
    pub(super) fn new(
        fields: Vec<FieldLine>,
        mut pseudo: impl FnMut(&[u8], Bytes) -> Result<(), StreamError>,
    ) -> Result<Self, StreamError> {
        let mut headers = HeaderMap::with_capacity(fields.len());
        let mut content_length = None;
        for field in fields {
            if let Some(name) = field.name.strip_prefix(b":") {
                if !headers.is_empty() {
                    return Err(StreamError::malformed(
                        "a pseudo-header field after a regular field",
                    ));
                }
                pseudo(name, field.value)?;
                continue;
            }
            let name = HeaderName::from_lowercase(&field.name)
                .map_err(|_| StreamError::malformed("an invalid field name"))?;
            if has_blank_ends(&field.value) {
                return Err(StreamError::malformed(
                    "a field value with blanks around it",
                ));
            }
            let mut value = HeaderValue::from_maybe_shared(field.value)
                .map_err(|_| StreamError::malformed("an invalid field value"))?;
            value.set_sensitive(field.is_sensitive);
            if is_connection_specific(&name) || (name == TE && value != "trailers") {
                return Err(StreamError::malformed("a connection-specific field"));
            }
            if name == CONTENT_LENGTH {
                let length = parse_length(value.as_bytes())?;
                if content_length.is_some_and(|other| other != length) {
                    return Err(StreamError::malformed("different content lengths"));
                }
                if content_length.replace(length).is_some() {
                    continue;
                }
                // Servers behind a proxy disagree about lists of equal numbers.
                value = HeaderValue::from(length);
            }
            headers
                .try_append(name, value)
                .map_err(|_| StreamError::malformed("too many fields"))?;
        }
        join_cookies(&mut headers);
        Ok(Self {
            headers,
            content_length,
        })
    }
}

/// For sections without pseudo-header fields.
pub(super) fn no_pseudo(_name: &[u8], _value: Bytes) -> Result<(), StreamError> {
    Err(StreamError::malformed("a pseudo-header field in trailers"))
}

/// Stores a pseudo-header field.
pub(super) fn set_once(slot: &mut Option<Bytes>, value: Bytes) -> Result<(), StreamError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(StreamError::malformed("a pseudo-header field is repeated")),
    }
}

/// Fields about one connection of HTTP/1.1 (RFC 9114, section 4.2); `te` is allowed with one value.
pub(super) fn is_connection_specific(name: &HeaderName) -> bool {
    *name == CONNECTION
        || *name == TRANSFER_ENCODING
        || *name == UPGRADE
        || name == "keep-alive"
        || name == "proxy-connection"
}

/// Whether a field value begins or ends with a space or a tab, which makes a message of HTTP/3 and HTTP/2 malformed (section 4.2; RFC 9113,
/// section 8.2.1).
pub fn has_blank_ends(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_blank(value.first()) || is_blank(value.last())
}

/// Whether a token may contain the byte (RFC 9110, section 5.6.2).
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// One number, or a list of equal numbers (RFC 9110, section 8.6).
fn parse_length(value: &[u8]) -> Result<u64, StreamError> {
    let invalid = || StreamError::malformed("an invalid content length");
    let mut found = None;
    for part in value.split(|&byte| byte == b',') {
        let digits = part.trim_ascii();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(invalid());
        }
        let number: u64 = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(invalid)?;
        if found.is_some_and(|other| other != number) {
            return Err(StreamError::malformed("different content lengths"));
        }
        found = Some(number);
    }
    found.ok_or_else(invalid)
}

/// Cookies may come in several fields for compression, which the layers above do not expect (RFC 9114, section 4.2.1).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let mut joined = Vec::new();
    for cookie in headers.get_all(COOKIE) {
        if !joined.is_empty() && !cookie.is_empty() {
            joined.extend_from_slice(b"; ");
        }
        joined.extend_from_slice(cookie.as_bytes());
    }
    let is_sensitive = headers
        .get_all(COOKIE)
        .iter()
        .any(HeaderValue::is_sensitive);
    if let Ok(mut value) = HeaderValue::from_maybe_shared(Bytes::from(joined)) {
        value.set_sensitive(is_sensitive);
        headers.insert(COOKIE, value);
    }
}
