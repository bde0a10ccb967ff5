//! The rate at which bytes arrive on a connection.

use std::time::Duration;

use marline::Instant;

/// The delay of responses, and the rate of arriving bytes.
#[derive(Default)]
pub(super) struct Pace {
    /// The shortest time from a request to its response.
    wait: Option<Duration>,
    /// The start of the current interval of that length.
    since: Instant,
    /// Bytes that arrived in it, and in the one before.
    bytes: u64,
    before: u64,
    /// Bytes per second until the start of the current interval.
    rate: Option<f64>,
}

impl Pace {
    /// A response has begun.
    pub(super) fn answered(&mut self, asked: Instant, now: Instant) {
        // Responses that waited for earlier ones on the connection took longer.
        let wait = now.saturating_since(asked);
        self.wait = Some(self.wait.map_or(wait, |least| least.min(wait)));
        self.since = now;
        self.bytes = 0;
    }

    /// Bytes have arrived.
    pub(super) fn arrived(&mut self, bytes: u64, now: Instant) {
        if now.saturating_since(self.since) >= self.wait() {
            self.rate = self.rate(now);
            self.before = self.bytes;
            self.since = now;
            self.bytes = 0;
        }
        self.bytes += bytes;
    }

    /// The shortest time from a request to its response.
    pub(super) fn wait(&self) -> Duration {
        self.wait.unwrap_or_default()
    }

    /// The recent rate in bytes per second: an interval has the same weight as all before it, and a longer
    /// one more. `None` if no bytes have arrived.
    pub(super) fn rate(&self, now: Instant) -> Option<f64> {
        let passed = now.saturating_since(self.since).as_secs_f64();
        if passed == 0.0 {
            return self.rate;
        }
        let rate = self.bytes as f64 / passed;
        let Some(before) = self.rate else {
            return (rate > 0.0).then_some(rate);
        };
        let weight = passed / (passed + self.wait().as_secs_f64());
        Some(before + (rate - before) * weight)
    }

    /// Bytes that may arrive until the response to a request that is sent now: twice those of the last
    /// interval, as windows in slow start double in a round trip.
    pub(super) fn ahead(&self) -> u64 {
        2 * self.before.max(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn twice_the_bytes_of_the_last_round_trip_are_expected_ahead() {
        let mut pace = Pace::default();
        assert_eq!(pace.ahead(), 0);
        pace.answered(at(0), at(50));
        pace.arrived(1000, at(50));
        assert_eq!(pace.ahead(), 2000);
        pace.arrived(1000, at(60));
        pace.arrived(1000, at(100));
        assert_eq!(pace.ahead(), 4000);
        pace.arrived(2000, at(110));
        assert_eq!(pace.ahead(), 6000);
        // The next response waited behind others: its delay is not a round-trip time.
        pace.answered(at(110), at(300));
        pace.arrived(10, at(310));
        assert_eq!(pace.ahead(), 4000);
    }

    #[test]
    fn the_rate_follows_arriving_bytes() {
        let mut pace = Pace::default();
        assert_eq!(pace.rate(at(9)), None);
        pace.answered(at(0), at(50));
        assert_eq!(pace.rate(at(60)), None);
        pace.arrived(1000, at(50));
        pace.arrived(4000, at(100));
        assert_eq!(pace.rate(at(100)), Some(20_000.0));
        // 80 kB/s in an interval as long as the round trip.
        assert_eq!(pace.rate(at(150)), Some(50_000.0));
        let stalled = pace.rate(at(2_100)).unwrap();
        assert!(stalled < 3_000.0, "{stalled}");
    }
}
