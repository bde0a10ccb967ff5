//! Messages: field sections to requests, responses and trailers, and back (RFC 9114, sections 4.1.2 to 4.4).

mod authority;
mod encode;
mod fields;
mod length;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use self::authority::{is_authority, without_empty_port};
pub(crate) use self::encode::{request_fields, request_path, response_fields, trailer_fields};
pub use self::fields::has_blank_ends;
pub(crate) use self::length::ContentLength;
pub(crate) use self::request::decode_request;
pub(crate) use self::response::decode_response;
use crate::error::StreamError;
use crate::qpack::FieldLine;

/// The protocol of an extended CONNECT request: the value of `:protocol` (RFC 9220, section 3; RFC 8441, section 4).
///
/// It is among the extensions of the `http::Request`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Protocol(String);

impl Protocol {
    /// A protocol; `None` if the name is not a token (RFC 9110, section 7.8).
    pub fn new(name: &str) -> Option<Self> {
        let token = !name.is_empty() && name.bytes().all(fields::is_token_byte);
        token.then(|| Self(name.to_owned()))
    }

    /// Its name, such as `websocket`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The fields of a trailer section.
///
/// # Errors
/// H3_MESSAGE_ERROR: it has pseudo-header fields, or fields that are not allowed in HTTP/3.
pub(crate) fn decode_trailers(fields: Vec<FieldLine>) -> Result<http::HeaderMap, StreamError> {
    fields::Section::new(fields, fields::no_pseudo).map(|section| section.headers)
}
