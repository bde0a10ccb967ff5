//! The content of a message, as its header announces it.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// Dates that each thread keeps: that of now, and those of files that are often asked for.
const KEPT_DATES: usize = 64;

thread_local! {
    /// Dates that were written lately, each at the remainder of its seconds.
    static DATES: RefCell<[Option<KeptDate>; KEPT_DATES]> = const { RefCell::new([const { None }; KEPT_DATES]) };
}

/// A date of HTTP.
#[derive(Clone)]
struct KeptDate {
    unix_time_s: u64,
    value: HeaderValue,
}

/// The date of HTTP (RFC 9110, section 5.6.7) for `time`, if there is one.
pub(crate) fn http_date(time: SystemTime) -> Option<HeaderValue> {
    let unix_time_s = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    if unix_time_s >= DATES_END_S {
        return None;
    }
    DATES.with_borrow_mut(|dates| {
        let kept = &mut dates[(unix_time_s % KEPT_DATES as u64) as usize];
        match kept {
            Some(date) if date.unix_time_s == unix_time_s => Some(date.value.clone()),
            _ => {
                let value = HeaderValue::try_from(httpdate::fmt_http_date(time)).ok()?;
                Some(kept.insert(KeptDate { unix_time_s, value }).value.clone())
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn kept_dates_are_those_of_their_seconds() {
        let at = |seconds| UNIX_EPOCH + Duration::from_millis(1000 * seconds + 999);
        for _ in 0..2 {
            for (seconds, date) in [
                (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
                (KEPT_DATES as u64, "Thu, 01 Jan 1970 00:01:04 GMT"),
                (1, "Thu, 01 Jan 1970 00:00:01 GMT"),
            ] {
                assert_eq!(http_date(at(seconds)).unwrap(), date);
            }
        }
    }

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
