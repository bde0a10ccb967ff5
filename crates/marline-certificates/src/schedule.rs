//! When a certificate is renewed, and when a failed attempt is repeated. Times are those since 1970.

use std::collections::BTreeMap;
use std::time::Duration;

use marline::Runtime;
use marline_http::Dates;
use marline_http::server::CertificateStatus;
use serde::{Deserialize, Serialize};

/// The wait after a first failure; it doubles with each further one. An authority allows some failed validations of a name in an
/// hour (Let's Encrypt: five), which the first attempts are.
const FIRST_RETRY: Duration = Duration::from_secs(120);

/// The longest wait: what keeps a certificate from being issued may be mended any day.
const LAST_RETRY: Duration = Duration::from_secs(24 * 3600);

/// Orders in an hour, of all certificates together: half of what Let's Encrypt allows an account.
const ORDERS_PER_HOUR: usize = 50;

const HOUR: Duration = Duration::from_secs(3600);

/// The longest sleep: a clock that is set, or a machine that slept, makes certificates due earlier.
pub(crate) const LOOK_AGAIN: Duration = HOUR;

/// The shortest time between two requests to a responder.
const FIRST_STATUS: Duration = Duration::from_secs(60);

/// The shortest and longest time until renewal information is asked for again (RFC 9773, section 4.3.2).
const ASK_AGAIN: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(24 * 3600);

/// A number from 0 to 1, drawn for each decision.
pub(crate) type Drawn = f64;

/// Draws such a number.
pub(crate) fn draw(runtime: &dyn Runtime) -> Drawn {
    let seed = runtime.seed().unwrap_or_default();
    let drawn = u32::from_le_bytes([seed[0], seed[1], seed[2], seed[3]]);
    f64::from(drawn) / f64::from(u32::MAX)
}

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

/// The time at which a newer status is asked for, if this one was received at `now`: after half of its validity, and up to a tenth of
/// it later; a status that was older is used for half of the rest.
pub(crate) fn renew_status_at(status: &CertificateStatus, now: Duration, drawn: Drawn) -> Duration {
    half_of(status.this_update(), status.next_update(), now, drawn)
}

fn half_of(start: Duration, end: Duration, now: Duration, drawn: Drawn) -> Duration {
    let half = start + end.saturating_sub(start).mul_f64(0.5 + drawn / 10.0);
    let rest = now + (end.saturating_sub(now) / 2).max(FIRST_STATUS);
    match half > now {
        true => half.max(now + FIRST_STATUS),
        false => rest,
    }
}

/// The wait after `failures` requests in a row to responders: at most an hour, as clients refuse a certificate without status.
pub(crate) fn retry_status_after(failures: u32, drawn: Drawn) -> Duration {
    retry_after(failures, drawn).min(HOUR)
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

/// The earliest of the times of each name: a name has one value.
pub(crate) fn earliest<'a>(times: impl Iterator<Item = (&'a str, f64)>) -> BTreeMap<&'a str, f64> {
    let mut earliest = BTreeMap::new();
    for (name, time) in times {
        let first = earliest.entry(name).or_insert(time);
        *first = time.min(*first);
    }
    earliest
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
    fn a_status_is_renewed_at_half_of_its_validity_or_of_what_is_left_of_it() {
        let (start, end) = (DAY * 1000, DAY * 1004);
        assert_eq!(half_of(start, end, start, 0.0), DAY * 1002);
        assert!(half_of(start, end, start, 1.0) < DAY * 1003);
        assert_eq!(half_of(start, end, DAY * 1003, 0.0), DAY * 1003 + DAY / 2);
        let short = start + Duration::from_secs(10);
        assert_eq!(half_of(start, short, start, 0.0), start + FIRST_STATUS);
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
