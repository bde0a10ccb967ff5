//! What the header of a message says of its content.

use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{Method, StatusCode};

/// Whether a response to `method` with the final `status` has no content, whatever its fields say (RFC 9110, section 6.4.1).
pub(crate) fn is_bodiless(method: &Method, status: StatusCode) -> bool {
    *method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The length of the content in bytes, if the fields announce a valid one.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
