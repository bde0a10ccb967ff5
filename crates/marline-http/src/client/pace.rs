//! Transfers that are slower than the network, and those that are too slow.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use marline::Instant;

use super::ClientError;
use crate::runtime::RuntimeHandle;

/// The longest time for which a transfer makes up for time without data: bursts are no longer than this.
const BURST: Duration = Duration::from_millis(100);

/// Delays data so that not more than some bytes a second are taken.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: u64,
    /// When the data so far would have been taken at this rate.
    free: Mutex<Option<Instant>>,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            free: Mutex::default(),
        }
    }

    /// Waits until `bytes` more may be taken.
    pub(super) async fn wait(&self, runtime: &RuntimeHandle, bytes: usize) {
        let wait = self.reserve(runtime.now(), bytes);
        if !wait.is_zero() {
            runtime.sleep(wait).await;
        }
    }

    fn reserve(&self, now: Instant, bytes: usize) -> Duration {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let time = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let behind = free.map_or(Duration::ZERO, |free| now.saturating_since(free));
        // What a late timer has cost is made up for by the next pieces, however small they are.
        let from = match free.filter(|_| behind < BURST) {
            Some(free) => free,
            None => now - behind.min(BURST),
        };
        let taken = from + time;
        *free = Some(taken);
        taken.saturating_since(now)
    }
}

/// A transfer slower than this for this long ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowSpeed {
    /// Bytes a second.
    pub bytes_per_second: u64,
    /// The time.
    pub time: Duration,
}

/// Measures whether a transfer is too slow.
pub(super) struct SpeedCheck {
    limit: LowSpeed,
    since: Instant,
    bytes: u64,
}

impl SpeedCheck {
    pub(super) fn new(limit: LowSpeed, now: Instant) -> Self {
        Self {
            limit,
            since: now,
            bytes: 0,
        }
    }

    /// The time until the next check.
    pub(super) fn left(&self, now: Instant) -> Duration {
        let end = self.since + self.limit.time;
        end.saturating_since(now)
    }

    pub(super) fn on_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Checks the time since the last check if it is long enough.
    ///
    /// # Errors
    /// [`ClientError::TooSlow`].
    pub(super) fn check(&mut self, now: Instant) -> Result<(), ClientError> {
        if !self.left(now).is_zero() {
            return Ok(());
        }
        let time = now.saturating_since(self.since).as_secs_f64();
        if (self.bytes as f64) < self.limit.bytes_per_second as f64 * time {
            return Err(ClientError::TooSlow { limit: self.limit });
        }
        self.since = now;
        self.bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_takes_as_long_as_the_rate_says_and_bursts_are_short() {
        let pace = Pace::new(1000);
        let start = Instant::from_nanos(0);
        let second = Duration::from_secs(1);
        assert_eq!(pace.reserve(start, 1000), second);
        assert_eq!(pace.reserve(start, 500), second * 3 / 2);
        // After ten seconds without data, only a burst is free.
        assert_eq!(pace.reserve(start + 10 * second, 1000), second - BURST);
    }

    #[test]
    fn late_timers_do_not_make_transfers_of_small_pieces_slower() {
        let pace = Pace::new(1000);
        let (mut now, late) = (Instant::from_nanos(0), Duration::from_millis(30));
        for _ in 0..100 {
            let wait = pace.reserve(now, 10);
            if !wait.is_zero() {
                now += wait + late;
            }
        }
        let taken = now.saturating_since(Instant::from_nanos(0));
        assert!(taken <= Duration::from_secs(1) + late, "{taken:?}");
    }

    #[test]
    fn only_a_transfer_below_the_limit_for_the_whole_time_is_too_slow() {
        let second = Duration::from_secs(1);
        let start = Instant::from_nanos(0);
        let limit = LowSpeed {
            bytes_per_second: 100,
            time: 2 * second,
        };
        let mut check = SpeedCheck::new(limit, start);
        check.on_bytes(50);
        assert!(check.check(start + second).is_ok());
        check.on_bytes(150);
        assert!(check.check(start + 2 * second).is_ok());
        check.on_bytes(199);
        assert!(check.check(start + 4 * second).is_err());
    }
}
