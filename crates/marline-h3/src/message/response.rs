//! Responses (RFC 9114, section 4.3.2).

use http::{Response, StatusCode, Version};

use super::fields::{Section, set_once};
use crate::error::StreamError;
use crate::qpack::FieldLine;

/// A response, interim or not, and the length that it announces.
pub(crate) struct DecodedResponse {
    pub(crate) response: Response<()>,
    pub(crate) content_length: Option<u64>,
}

/// The response of a field section.
///
/// # Errors
/// H3_MESSAGE_ERROR: it is malformed.
pub(crate) fn decode_response(fields: Vec<FieldLine>) -> Result<DecodedResponse, StreamError> {
    let mut status = None;
    let section = Section::new(fields, |name, value| match name {
        b"status" => set_once(&mut status, value),
        _ => Err(StreamError::malformed(
            "an unknown pseudo-header field in a response",
        )),
    })?;
    let status = status.ok_or(StreamError::malformed("a response without :status"))?;
    // Those above 599 are for the client to treat as errors of the server (RFC 9110, section 15).
    let status = StatusCode::from_bytes(&status)
        .map_err(|_| StreamError::malformed("an invalid :status"))?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        // Section 4.5.
        return Err(StreamError::malformed("a response with status 101"));
    }
    let mut response = Response::new(());
    *response.version_mut() = Version::HTTP_3;
    *response.status_mut() = status;
    *response.headers_mut() = section.headers;
    Ok(DecodedResponse {
        response,
        content_length: section.content_length,
    })
}
