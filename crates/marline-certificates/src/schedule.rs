//! When a certificate is renewed, and when a failed attempt is repeated. Times are those since 1970.

use std::time::Duration;

use marline_http::Dates;
use serde::{Deserialize, Serialize};

/// The wait after a first failure; it doubles with each further one. An authority allows some failed validations of a name in an
/// hour (Let's Encrypt: five), which the first attempts are.
const FIRST_RETRY: Duration = Duration::from_secs(120);

/// The longest wait: what keeps a certificate from being issued may be mended any day.
const LAST_RETRY: Duration = Duration::from_secs(24 * 3600);

/// Orders in an hour, of all certificates together: half of what Let's Encrypt allows an account.
const ORDERS_PER_HOUR: usize = 50;

const HOUR: Duration = Duration::from_secs(3600);

/// The shortest and longest time until renewal information is asked for again (RFC 9773, section 4.3.2).
const ASK_AGAIN: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(24 * 3600);

/// A number from 0 to 1, drawn for each decision.
pub(crate) type Drawn = f64;

/// The time at which a certificate is renewed if its authority has no advice: after two thirds of its validity, and up to a fiftieth
/// of it later, so that certificates of one day are not all renewed at once.
pub(crate) fn renew_at(dates: Dates, drawn: Drawn) -> Duration {
    let validity = dates.not_after.saturating_sub(dates.not_before);
    dates.not_before + validity.mul_f64(2.0 / 3.0 + drawn / 50.0)
}

/// A time that an authority suggests, drawn from its window (RFC 9773, section 4.2), in any case before the last tenth of the validity.
pub(crate) fn suggested(window: Window, dates: Dates, drawn: Drawn) -> Duration {
    let length = window.end.saturating_sub(window.start);
    let validity = dates.not_after.saturating_sub(dates.not_before);
    let latest = dates.not_after.saturating_sub(validity / 10);
    (window.start + length.mul_f64(drawn)).min(latest)
}

/// A window in which an authority wants a certificate to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Duration,
    pub(crate) end: Duration,
}

/// The time until renewal information is asked for again, if the authority says `after`.
pub(crate) fn ask_again(after: Duration) -> Duration {
    after.clamp(*ASK_AGAIN.start(), *ASK_AGAIN.end())
}

/// The wait after `failures` attempts in a row that failed, between three and five quarters of the doubled one.
pub(crate) fn retry_after(failures: u32, drawn: Drawn) -> Duration {
    let doubled = 1u32.checked_shl(failures.saturating_sub(1).min(16));
    let wait = FIRST_RETRY.saturating_mul(doubled.unwrap_or(u32::MAX));
    wait.min(LAST_RETRY).mul_f64(0.75 + drawn / 2.0)
}

/// The orders of the last hour, of which there are at most [`ORDERS_PER_HOUR`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Orders(Vec<u64>);

impl Orders {
    /// Counts an order at `now`.
    ///
    /// # Errors
    /// There have been too many; the time at which there may be another.
    pub(crate) fn begin(&mut self, now: Duration) -> Result<(), Duration> {
        let since = now.saturating_sub(HOUR).as_secs();
        // A clock that was ahead must not keep orders away.
        self.0.retain(|at| (since + 1..=now.as_secs()).contains(at));
        if self.0.len() >= ORDERS_PER_HOUR {
            let first = self.0.iter().min().copied().unwrap_or(now.as_secs());
            return Err(Duration::from_secs(first) + HOUR);
        }
        self.0.push(now.as_secs());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn dates(days: u32) -> Dates {
        Dates {
            not_before: DAY * 1000,
            not_after: DAY * (1000 + days),
        }
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_validity() {
        assert_eq!(renew_at(dates(90), 0.0), DAY * 1060);
        let last = renew_at(dates(90), 1.0);
        assert!(last > DAY * 1061 && last < DAY * 1062, "{last:?}");
    }

    #[test]
    fn a_suggested_time_is_in_its_window_and_before_the_end_of_the_validity() {
        let window = |start: u32, end: u32| Window {
            start: DAY * (1000 + start),
            end: DAY * (1000 + end),
        };
        assert_eq!(suggested(window(50, 52), dates(90), 0.5), DAY * 1051);
        assert_eq!(suggested(window(0, 1), dates(90), 0.0), DAY * 1000);
        assert_eq!(suggested(window(88, 100), dates(90), 1.0), DAY * 1081);
    }

    #[test]
    fn waits_double_up_to_a_day() {
        let waits: Vec<_> = [1, 2, 3, 4].map(|n| retry_after(n, 0.5).as_secs()).into();
        assert_eq!(waits, [120, 240, 480, 960]);
        assert_eq!(retry_after(u32::MAX, 0.5), DAY);
        assert!(retry_after(1, 0.0) < retry_after(1, 1.0));
        // Five failed validations of a name in an hour are too many.
        let in_an_hour = (1..5).map(|n| retry_after(n, 0.0)).sum::<Duration>();
        assert!(in_an_hour + retry_after(5, 0.0) > Duration::from_secs(2700));
    }

    #[test]
    fn orders_beyond_those_of_an_hour_wait() {
        let mut orders = Orders::default();
        let now = DAY * 1000;
        for _ in 0..ORDERS_PER_HOUR {
            orders.begin(now).unwrap();
        }
        let again = orders.begin(now + HOUR / 2).unwrap_err();
        assert_eq!(again, now + HOUR);
        orders.begin(again).unwrap();
        // The clock is set back.
        orders.begin(now - DAY).unwrap();
    }

    #[test]
    fn renewal_information_is_asked_for_at_least_once_a_day() {
        assert_eq!(ask_again(Duration::ZERO), Duration::from_secs(60));
        assert_eq!(ask_again(DAY * 7), DAY);
    }
}
