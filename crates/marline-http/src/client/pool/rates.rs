//! Bytes per second over the last second.

use std::time::Duration;

use marline::Instant;

/// The parts of the second.
const PARTS: usize = 10;
const PART: Duration = Duration::from_millis(100);

/// Counts bytes of the last second.
#[derive(Clone, Debug, Default)]
pub(super) struct RateWindow {
    /// Bytes by tenth of a second; the number of a tenth modulo [`PARTS`] is its place.
    parts: [u64; PARTS],
    /// The number of the latest tenth that is counted.
    latest: u64,
    /// When the first bytes came after a second without any.
    since: Option<Instant>,
}

impl RateWindow {
    /// Counts `bytes` at `now`.
    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        self.advance(now);
        if self.since.is_none() {
            self.since = Some(now);
        }
        self.parts[self.latest as usize % PARTS] += bytes;
    }

    /// Bytes per second; `None` if there are none of the last second.
    pub(super) fn per_second(&mut self, now: Instant) -> Option<f64> {
        self.advance(now);
        let sum: u64 = self.parts.iter().sum();
        let since = self.since.filter(|_| sum > 0)?;
        let span = now.saturating_since(since).clamp(PART, PART * PARTS as u32);
        Some(sum as f64 / span.as_secs_f64())
    }

    fn advance(&mut self, now: Instant) {
        let number = now.as_nanos() / PART.as_nanos() as u64;
        let passed = number.saturating_sub(self.latest);
        for step in 1..=passed.min(PARTS as u64) {
            self.parts[(self.latest + step) as usize % PARTS] = 0;
        }
        self.latest = self.latest.max(number);
        if self.parts.iter().all(|part| *part == 0) {
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let at = |ms| Instant::EPOCH + Duration::from_millis(ms);
        let mut rate = RateWindow::default();
        assert_eq!(rate.per_second(at(50)), None);
        rate.add(at(100), 1000);
        assert_eq!(rate.per_second(at(300)), Some(5000.0));
        rate.add(at(1050), 500);
        assert_eq!(rate.per_second(at(1099)), Some(1500.0 / 0.999));
        assert_eq!(rate.per_second(at(1200)), Some(500.0));
        assert_eq!(rate.per_second(at(5000)), None);
    }
}
