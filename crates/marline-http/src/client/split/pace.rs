//! How much arrives on a lane.

use std::time::Duration;

use marline::Instant;

/// What arrives between a request and its response, in bytes.
#[derive(Default)]
pub(super) struct Pace {
    /// From the first request to its response.
    wait: Option<Duration>,
    /// When the present interval of that length began.
    since: Instant,
    /// What arrived in it, and in the one before.
    bytes: u64,
    before: u64,
}

impl Pace {
    /// A response has begun.
    pub(super) fn answered(&mut self, asked: Instant, now: Instant) {
        // Later ones stand in line behind what was asked for before them.
        self.wait.get_or_insert(now.saturating_since(asked));
        self.since = now;
        self.bytes = 0;
    }

    /// Bytes have arrived.
    pub(super) fn arrived(&mut self, bytes: u64, now: Instant) {
        let wait = self.wait.unwrap_or_default();
        if now.saturating_since(self.since) >= wait {
            self.before = self.bytes;
            self.since = now;
            self.bytes = 0;
        }
        self.bytes += bytes;
    }

    /// What may arrive until the response to a request that is sent now: twice what did last time, for
    /// windows in slow start double in a round trip.
    pub(super) fn ahead(&self) -> u64 {
        2 * self.before.max(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expects_twice_what_arrived_in_a_round_trip() {
        let at = |millis| Instant::EPOCH + Duration::from_millis(millis);
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
        // The next response stood in line; its wait says nothing.
        pace.answered(at(110), at(300));
        pace.arrived(10, at(310));
        assert_eq!(pace.ahead(), 4000);
    }
}
