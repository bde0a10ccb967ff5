//! Spreads a window over its round trip (RFC 9002, section 7.7).

use std::time::Duration;

use crate::Instant;

/// Full datagrams the bucket holds at least.
const BURST_PACKETS: u64 = 10;

/// Time's worth of the rate the bucket holds at least: what a timer of a busy host may be late.
const BURST_NANOS: u64 = 2_000_000;

/// A token bucket of bytes that fills at the controller's rate.
///
/// Instead of a level it keeps the moment at which the bucket is full, so that a level never has to
/// be brought up to date and no fraction of a byte is lost.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    full_at: Instant,
    burst_bytes: u64,
}

impl Pacer {
    /// A full bucket.
    pub fn new(max_datagram_size: u64) -> Self {
        let mut pacer = Self {
            full_at: Instant::EPOCH,
            burst_bytes: 0,
        };
        pacer.on_mtu(max_datagram_size);
        pacer
    }

    /// Datagrams may now be `mtu` bytes long.
    pub fn on_mtu(&mut self, mtu: u64) {
        self.burst_bytes = mtu.saturating_mul(BURST_PACKETS);
    }

    /// When `bytes` may leave at `rate` bytes per second; `None` is now.
    ///
    /// Ask for a whole burst to wake up once for all of it. Asking for more than the bucket holds
    /// waits until it is full.
    pub fn next_send(&mut self, now: Instant, rate: u64, bytes: u64) -> Option<Instant> {
        let capacity = cost(rate, self.burst_bytes).max(BURST_NANOS);
        self.next_send_from(capacity, now, rate, bytes)
    }

    /// As [`next_send`](Self::next_send), but however high the rate, no more than ten full datagrams leave
    /// in one burst: for a window that nothing has yet shown to fit (RFC 9002, section 7.7).
    pub fn next_send_spread(&mut self, now: Instant, rate: u64, bytes: u64) -> Option<Instant> {
        let capacity = cost(rate, self.burst_bytes);
        self.next_send_from(capacity, now, rate, bytes)
    }

    /// The bucket holds `capacity` nanoseconds' worth of the rate.
    fn next_send_from(
        &mut self,
        capacity: u64,
        now: Instant,
        rate: u64,
        bytes: u64,
    ) -> Option<Instant> {
        if self.full_at <= now {
            return None;
        }
        // Empty is the least it can be, at the rate that holds now.
        self.full_at = self.full_at.min(now + Duration::from_nanos(capacity));
        let missing = capacity - cost(rate, bytes).min(capacity);
        let allowed_at = self.full_at - Duration::from_nanos(missing);
        (allowed_at > now).then_some(allowed_at)
    }

    /// `bytes` left at `rate` bytes per second.
    pub fn on_sent(&mut self, now: Instant, rate: u64, bytes: u64) {
        self.full_at = self.full_at.max(now) + Duration::from_nanos(cost(rate, bytes));
    }
}

/// Time that `bytes` take at `rate` bytes per second, in nanoseconds.
fn cost(rate: u64, bytes: u64) -> u64 {
    bytes.saturating_mul(1_000_000_000) / rate.max(1)
}

#[cfg(test)]
mod tests;
