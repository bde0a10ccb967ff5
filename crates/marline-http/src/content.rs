//! The content of a message, as its header announces it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use http::{Method, StatusCode};

/// Whether a response to `method` with the final `status` has no content, regardless of its fields (RFC 9110, section
/// 6.4.1).
pub(crate) fn is_bodiless(method: &Method, status: StatusCode) -> bool {
    *method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The length of the content in bytes, if the fields announce a valid one.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The seconds from 1970 to the year 10000, the first that HTTP dates cannot express.
const DATES_END_S: u64 = 253_402_300_800;

/// The date of HTTP (RFC 9110, section 5.6.7) for `time`, if there is one.
pub(crate) fn http_date(time: SystemTime) -> Option<HeaderValue> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    if since >= Duration::from_secs(DATES_END_S) {
        return None;
    }
    HeaderValue::try_from(httpdate::fmt_http_date(time)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_all_dates_have_none() {
        let second = Duration::from_secs(1);
        let end = UNIX_EPOCH + Duration::from_secs(DATES_END_S);
        assert_eq!(http_date(UNIX_EPOCH - second), None);
        assert_eq!(
            http_date(UNIX_EPOCH).unwrap(),
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
        assert_eq!(
            http_date(end - second).unwrap(),
            "Fri, 31 Dec 9999 23:59:59 GMT"
        );
        assert_eq!(http_date(end), None);
    }
}
