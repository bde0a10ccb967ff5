//! Byte ranges in requests and responses (RFC 9110 section 14).

use http::header::CONTENT_RANGE;
use http::{HeaderMap, HeaderValue};

/// `Range: bytes=FIRST-LAST` (RFC 9110 section 14.1.2).
pub(super) fn range(first: u64, last: Option<u64>) -> HeaderValue {
    let last = last.map_or_else(String::new, |last| last.to_string());
    HeaderValue::try_from(format!("bytes={first}-{last}")).expect("digits are visible ASCII")
}

/// `Content-Range: bytes FIRST-LAST/SIZE` (RFC 9110 section 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) size: Option<u64>,
}

impl ContentRange {
    /// A valid range: it is not empty and ends before the size.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(CONTENT_RANGE)?.to_str().ok()?;
        let (range, size) = value.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let range = Self {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            size: size.parse().ok(),
        };
        let end = range.size.unwrap_or(u64::MAX);
        (range.first <= range.last && range.last < end).then_some(range)
    }
}
