//! Limits on how often a client requests.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::HeaderMap;
use marline::settings::text_values;
use marline_http::RequestKey;
use tokio::time::Instant;

/// Clients whose requests are counted at once. With more, the others share one count.
const MAX_CLIENTS: usize = 100_000;

/// The least time between two searches for clients that need not be counted any more.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Requests in a time: `10/s`, `100/m`, `1000/h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    requests: u32,
    unit: char,
}

/// A text is not a [`Rate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a request rate; write a number per second, minute or hour, as 10/s, 100/m or 1000/h"
)]
pub struct InvalidRate(String);

impl Rate {
    /// The time between two requests at this rate.
    fn interval(self) -> Duration {
        let seconds = match self.unit {
            's' => 1,
            'm' => 60,
            _ => 3600,
        };
        Duration::from_secs(seconds) / self.requests
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let invalid = || InvalidRate(text.to_owned());
        let (requests, unit) = text.split_once('/').ok_or_else(invalid)?;
        let unit = match unit.trim() {
            "s" | "second" => 's',
            "m" | "min" | "minute" => 'm',
            "h" | "hour" => 'h',
            _ => return Err(invalid()),
        };
        match requests.trim().parse() {
            Ok(requests @ 1..=1_000_000) => Ok(Self { requests, unit }),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.requests, self.unit)
    }
}

text_values!(Rate);

/// The requests of each client, by the generic cell rate algorithm (ITU-T I.371): one time for each client.
#[derive(Debug)]
pub(crate) struct RateLimit {
    interval: Duration,
    /// The time by which a client may be ahead of its rate.
    tolerance: Duration,
    key: RequestKey,
    /// Hashes keys, whose length clients choose.
    hashes: RandomState,
    counted: Mutex<Counted>,
}

/// The clients that are counted.
#[derive(Debug, Default)]
struct Counted {
    /// When each client's requests so far are within its rate.
    even: HashMap<Client, Instant>,
    /// When those that need not be counted any more were looked for: it takes a while.
    swept: Option<Instant>,
}

impl Counted {
    /// Whether there is a place for another client.
    fn has_place(&mut self, now: Instant) -> bool {
        let is_due = |swept| now.duration_since(swept) >= SWEEP_INTERVAL;
        if self.even.len() >= MAX_CLIENTS && self.swept.is_none_or(is_due) {
            self.even.retain(|_, even| *even > now);
            self.swept = Some(now);
        }
        self.even.len() < MAX_CLIENTS
    }
}

/// An IPv4 address, the /64 of an IPv6 address, the hash of a key, or everyone who finds no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Client {
    One(IpAddr),
    Key(u64),
    Others,
}

impl Client {
    fn of(address: IpAddr) -> Self {
        Self::One(match address.to_canonical() {
            IpAddr::V6(address) => {
                let prefix = u128::from(address) >> 64 << 64;
                Ipv6Addr::from(prefix).into()
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

impl RateLimit {
    /// `rate`, with bursts of `burst` requests; by default, those of a second, and one at least. Requests are counted together by
    /// `key`, or by address where they have none.
    pub(crate) fn new(rate: Rate, burst: Option<u32>, key: RequestKey) -> Self {
        let interval = rate.interval();
        let of_a_second = Duration::from_secs(1).as_nanos() / interval.as_nanos().max(1);
        let of_a_second = u32::try_from(of_a_second).unwrap_or(u32::MAX);
        let burst = burst.unwrap_or(of_a_second).max(1);
        Self {
            interval,
            tolerance: interval.saturating_mul(burst - 1),
            key,
            hashes: RandomState::new(),
            counted: Mutex::default(),
        }
    }

    /// Counts a request with the fields `headers` of the client at `address`, or returns the time to wait before another one.
    pub(crate) fn refuse(&self, address: IpAddr, headers: &HeaderMap) -> Option<Duration> {
        let now = Instant::now();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = match self.key.value(headers) {
            Some(value) => Client::Key(self.hashes.hash_one(value)),
            None => Client::of(address),
        };
        if !counted.even.contains_key(&client) && !counted.has_place(now) {
            client = Client::Others;
        }
        let even = &mut counted.even;
        let at = even.get(&client).copied().unwrap_or(now).max(now);
        let ahead = at.duration_since(now);
        match ahead.checked_sub(self.tolerance) {
            Some(wait) if !wait.is_zero() => Some(wait),
            _ => {
                even.insert(client, at + self.interval);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn refuse(limit: &RateLimit, address: IpAddr) -> Option<Duration> {
        limit.refuse(address, &HeaderMap::new())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_with_one_key_are_counted_together() {
        for (key, name, values) in [
            ("header:X-API-Key", "x-api-key", ["ana", "bob"]),
            ("cookie:id", "cookie", ["a=1; id=ana", "id=bob; id2=ana"]),
        ] {
            let limit = RateLimit::new("1/m".parse().unwrap(), None, key.parse().unwrap());
            let asked = |from: &str, value: &str| {
                let field = (name.parse().unwrap(), value.parse().unwrap());
                limit.refuse(address(from), &HeaderMap::from_iter([field]))
            };
            assert_eq!(asked("192.0.2.1", values[0]), None);
            assert!(asked("192.0.2.2", values[0]).is_some(), "{key}");
            assert_eq!(asked("192.0.2.1", values[1]), None, "{key}");
            assert_eq!(refuse(&limit, address("192.0.2.1")), None);
            assert!(refuse(&limit, address("192.0.2.1")).is_some());
        }
        for text in ["", "adress", "header:", "header:a b", "cookie:", "query:a"] {
            assert!(text.parse::<RequestKey>().is_err(), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_has_its_burst_and_then_its_rate() {
        let limit = RateLimit::new("2/s".parse().unwrap(), Some(3), RequestKey::Address);
        let client = address("192.0.2.1");
        for _ in 0..3 {
            assert_eq!(refuse(&limit, client), None);
        }
        assert_eq!(refuse(&limit, client), Some(Duration::from_millis(500)));
        assert_eq!(refuse(&limit, address("192.0.2.2")), None);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(refuse(&limit, client), None);
        assert!(refuse(&limit, client).is_some());
        tokio::time::advance(Duration::from_secs(60)).await;
        let passed = (0..10).filter(|_| refuse(&limit, client).is_none());
        assert_eq!(passed.count(), 3, "rest is not saved beyond the burst");
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_of_ipv6_is_one_client() {
        let limit = RateLimit::new("1/m".parse().unwrap(), None, RequestKey::Address);
        assert_eq!(refuse(&limit, address("2001:db8::1")), None);
        assert!(refuse(&limit, address("2001:db8::2")).is_some());
        assert_eq!(refuse(&limit, address("2001:db8:0:1::1")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_are_limited_in_number() {
        let limit = RateLimit::new("1/m".parse().unwrap(), None, RequestKey::Address);
        let limit_of = |index: u32| refuse(&limit, IpAddr::V4(index.into()));
        for index in 0..100_000 {
            assert_eq!(limit_of(index), None);
        }
        assert_eq!(limit_of(200_000), None);
        assert!(limit_of(200_001).is_some(), "it shares one count");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(limit_of(200_001), None);
        assert_eq!(limit.counted.lock().unwrap().even.len(), 1);
    }

    #[test]
    fn rates_are_read() {
        for (text, shown) in [("10/s", "10/s"), ("5 / minute", "5/m"), ("9/hour", "9/h")] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), shown);
        }
        for text in ["", "10", "0/s", "10/d", "x/s", "-1/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
