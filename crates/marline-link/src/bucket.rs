//! Token buckets.

use std::time::Duration;

use crate::Time;

/// Billionths of a bit in a byte: a rate of 1 bit per second is one billionth of a bit per nanosecond.
const BYTE: u128 = 8_000_000_000;

/// A token bucket that is full initially.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// Rate in bits per second.
    rate: u64,
    /// Size and content, in billionths of a bit.
    size: u128,
    tokens: u128,
    /// Time of the last refill.
    filled: Time,
}

impl Bucket {
    pub(crate) const fn new(bits_per_second: u64, bytes: u64) -> Self {
        let size = bytes as u128 * BYTE;
        Self {
            rate: bits_per_second,
            size,
            tokens: size,
            filled: Time::ZERO,
        }
    }

    /// Whether it holds `bytes` when full.
    pub(crate) const fn can_hold(&self, bytes: u32) -> bool {
        bytes as u128 * BYTE <= self.size
    }

    fn fill(&mut self, now: Time) {
        let gained = u128::from(self.rate) * now.since(self.filled).as_nanos();
        self.tokens = self.tokens.saturating_add(gained).min(self.size);
        self.filled = now;
    }

    /// Removes `bytes`, or nothing if it holds fewer at `now`. Returns whether it held them.
    pub(crate) fn take(&mut self, now: Time, bytes: u32) -> bool {
        self.fill(now);
        let left = self.tokens.checked_sub(u128::from(bytes) * BYTE);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    /// The first time from `now` on at which it holds `bytes`, rounded up to nanoseconds.
    pub(crate) fn ready(&mut self, now: Time, bytes: u32) -> Time {
        self.fill(now);
        let missing = (u128::from(bytes) * BYTE).saturating_sub(self.tokens);
        if missing == 0 {
            return now;
        }
        match missing.checked_div(u128::from(self.rate)) {
            Some(_) => {
                let nanos = missing.div_ceil(u128::from(self.rate));
                now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            None => Time::MAX,
        }
    }
}
