//! Repetition of attempts that failed for a reason that may pass.

use std::io;
use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use super::ClientError;

/// The first delay where none is given. It doubles with each attempt.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay where none is given.
const LONGEST_DELAY: Duration = Duration::from_secs(600);

/// The repetition of attempts that fail for a reason that may pass: a name that is not found, a time limit for the connection
/// or for progress, a network that is gone, and the statuses 408, 429, 500, 502, 503 and 504.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// The most repetitions.
    pub times: u32,
    /// The delay before each; without it, what `Retry-After` says, or one second, doubled each time.
    pub delay: Option<Duration>,
    /// The time since the start after which there are no more.
    pub max_time: Option<Duration>,
    /// Whether all errors count, but those of this machine.
    pub all_errors: bool,
    /// Whether a server that refuses connections counts.
    pub refused: bool,
}

impl Retry {
    /// Whether a response with `status` is one that may pass.
    pub(super) fn covers_status(&self, status: StatusCode) -> bool {
        matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
            || self.all_errors && (status.is_client_error() || status.is_server_error())
    }

    /// Whether `error` is one that may pass.
    pub(super) fn covers_error(&self, error: &ClientError) -> bool {
        match error {
            // The limit is for all attempts together, and this machine will not change.
            ClientError::TimeLimit { .. }
            | ClientError::File { .. }
            | ClientError::Output(_)
            | ClientError::Upload { .. }
            | ClientError::Url { .. }
            | ClientError::Scheme { .. }
            | ClientError::Header { .. }
            | ClientError::TooLarge { .. }
            | ClientError::Trust { .. }
            | ClientError::NotRepeatable { .. } => false,
            ClientError::Resolve { .. } => true,
            ClientError::Connect { cause, .. } if self.refused && is_refused(cause) => true,
            error => self.all_errors || error.is_timeout() || error.is_network_lost(),
        }
    }

    /// The delay before attempt number `attempt`, the first repetition being 1, after a response with these fields.
    pub(super) fn delay(
        &self,
        attempt: u32,
        headers: Option<&HeaderMap>,
        now: SystemTime,
    ) -> Duration {
        let asked = headers.and_then(|headers| retry_after(headers, now));
        let doubled = FIRST_DELAY * 2u32.saturating_pow(attempt.saturating_sub(1).min(10));
        match self.delay.filter(|delay| !delay.is_zero()) {
            Some(delay) => delay,
            None => asked.unwrap_or(doubled).min(LONGEST_DELAY),
        }
    }
}

fn is_refused(cause: &crate::body::BoxError) -> bool {
    let refused = io::ErrorKind::ConnectionRefused;
    cause
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == refused)
        || cause.to_string().contains("refused")
}

/// The time that a response asks for (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(value)
            .ok()?
            .duration_since(now)
            .ok(),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use marline::{ConnectionError, MigrateError};

    use super::*;
    use crate::http3::RequestError;

    #[test]
    fn delays_double_unless_the_server_or_the_user_names_one() {
        let second = Duration::from_secs(1);
        let now = SystemTime::UNIX_EPOCH;
        let mut retry = Retry::default();
        assert_eq!(retry.delay(1, None, now), second);
        assert_eq!(retry.delay(3, None, now), 4 * second);
        assert_eq!(retry.delay(40, None, now), LONGEST_DELAY);
        for (value, seconds) in [
            ("7", 7),
            ("Thu, 01 Jan 1970 00:00:09 GMT", 9),
            ("99999", 600),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry.delay(1, Some(&headers), now), second * seconds);
        }
        retry.delay = Some(3 * second);
        assert_eq!(retry.delay(5, None, now), 3 * second);
    }

    #[test]
    fn a_lost_network_may_pass_and_a_lost_server_may_not() {
        let covers = |error: ConnectionError| {
            Retry::default().covers_error(&ClientError::Truncated {
                received: 1,
                expected: None,
                cause: RequestError::Lost(error).into(),
            })
        };
        let why = MigrateError::Forbidden;
        assert!(covers(ConnectionError::NetworkLost(why)));
        assert!(!covers(ConnectionError::Reset));
    }

    #[test]
    fn statuses_that_may_pass_are_those_of_curl() {
        let retry = Retry::default();
        let covered = (200..600).filter(|code| {
            StatusCode::from_u16(*code).is_ok_and(|status| retry.covers_status(status))
        });
        assert_eq!(covered.collect::<Vec<_>>(), [408, 429, 500, 502, 503, 504]);
    }
}
