//! Limits on how often a client requests.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use marline::settings::text_values;
use tokio::time::Instant;

/// Clients whose requests are counted at once. With more, the others share one count.
const MAX_CLIENTS: usize = 100_000;

/// Requests in a time: `10/s`, `100/m`, `1000/h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    requests: u32,
    unit: char,
}

/// A text is not a [`Rate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no rate of requests; write their number per second, minute or hour, as 10/s, 100/m or 1000/h"
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
    /// When each client's requests so far are within its rate.
    even: Mutex<HashMap<Client, Instant>>,
}

/// An IPv4 address, the /64 of an IPv6 address, or everyone who finds no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Client {
    One(IpAddr),
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
    /// `rate`, with bursts of `burst` requests; by default, those of a second, and one at least.
    pub(crate) fn new(rate: Rate, burst: Option<u32>) -> Self {
        let interval = rate.interval();
        let of_a_second = Duration::from_secs(1).as_nanos() / interval.as_nanos().max(1);
        let of_a_second = u32::try_from(of_a_second).unwrap_or(u32::MAX);
        let burst = burst.unwrap_or(of_a_second).max(1);
        Self {
            interval,
            tolerance: interval.saturating_mul(burst - 1),
            even: Mutex::default(),
        }
    }

    /// Counts a request of the client at `address`, or returns the time to wait before another one.
    pub(crate) fn refuse(&self, address: IpAddr) -> Option<Duration> {
        let now = Instant::now();
        let mut even = self.even.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = Client::of(address);
        if even.len() >= MAX_CLIENTS && !even.contains_key(&client) {
            even.retain(|_, even| *even > now);
            if even.len() >= MAX_CLIENTS {
                client = Client::Others;
            }
        }
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

    #[tokio::test(start_paused = true)]
    async fn a_client_has_its_burst_and_then_its_rate() {
        let limit = RateLimit::new("2/s".parse().unwrap(), Some(3));
        let client = address("192.0.2.1");
        for _ in 0..3 {
            assert_eq!(limit.refuse(client), None);
        }
        assert_eq!(limit.refuse(client), Some(Duration::from_millis(500)));
        assert_eq!(limit.refuse(address("192.0.2.2")), None);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(limit.refuse(client), None);
        assert!(limit.refuse(client).is_some());
        tokio::time::advance(Duration::from_secs(60)).await;
        let passed = (0..10).filter(|_| limit.refuse(client).is_none());
        assert_eq!(passed.count(), 3, "rest is not saved beyond the burst");
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_of_ipv6_is_one_client() {
        let limit = RateLimit::new("1/m".parse().unwrap(), None);
        assert_eq!(limit.refuse(address("2001:db8::1")), None);
        assert!(limit.refuse(address("2001:db8::2")).is_some());
        assert_eq!(limit.refuse(address("2001:db8:0:1::1")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_are_limited_in_number() {
        let limit = RateLimit::new("1/m".parse().unwrap(), None);
        let limit_of = |index: u32| limit.refuse(IpAddr::V4(index.into()));
        for index in 0..100_000 {
            assert_eq!(limit_of(index), None);
        }
        assert_eq!(limit_of(200_000), None);
        assert!(limit_of(200_001).is_some(), "it shares one count");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(limit_of(200_001), None);
        assert_eq!(limit.even.lock().unwrap().len(), 1);
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
