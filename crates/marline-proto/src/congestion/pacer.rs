//! Pacing: packets of a window are spread over a round trip (RFC 9002, section 7.7).

use std::time::Duration;

use crate::Instant;

/// Smallest size of the bucket, in full datagrams.
const BURST_PACKETS: u64 = 10;

/// The same for a short queue, which marks packets that wait for longer than about a millisecond: ten packets wait for
/// 12 ms at 10 Mb/s.
const SHORT_BURST_PACKETS: u64 = 2;

/// Smallest size of the bucket, as time at the present rate in nanoseconds: timers of busy hosts are late by
/// as much.
const BURST_NANOS: u64 = 2_000_000;

/// Smallest number of quanta in a window.
const QUANTA_PER_WINDOW: u64 = 4;

/// A token bucket of bytes that fills at the controller's rate.
///
/// It stores the moment at which the bucket will be full instead of a level, so that no level has to be updated
/// and no fraction of a byte is lost.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    full_at: Instant,
    /// Smallest size of the bucket, in full datagrams.
    burst_packets: u64,
    max_datagram_size: u64,
    /// Packets that leave together once the bucket was empty.
    quantum: u64,
    /// The time at the present rate in which as many leave, if that is more, in nanoseconds.
    gather_nanos: u64,
    /// Whether it was empty, and the next quantum is not yet in it.
    refills: bool,
}

impl Pacer {
    /// A full bucket.
    pub fn new(max_datagram_size: u64) -> Self {
        Self {
            full_at: Instant::EPOCH,
            burst_packets: BURST_PACKETS,
            max_datagram_size,
            quantum: 1,
            gather_nanos: 0,
            refills: false,
        }
    }

    /// The same, but `packets` leave together, for links on which a burst costs no more than one packet: see
    /// [`next_quantum`](Self::next_quantum). The bucket holds at least as many.
    pub fn with_quantum(mut self, packets: u64) -> Self {
        self.quantum = packets.max(1);
        self
    }

    /// The same, but the packets of `time` leave together, up to half of what the bucket holds: a host sends them with one system call.
    pub fn with_gather(mut self, time: Duration) -> Self {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.gather_nanos = nanos.min(BURST_NANOS / 2);
        self
    }

    /// The same for the short queue of L4S, with bursts of two datagrams instead of ten.
    pub fn with_short_bursts(mut self) -> Self {
        self.burst_packets = SHORT_BURST_PACKETS;
        self
    }

    /// `packets` of the largest size, in bytes.
    fn full(&self, packets: u64) -> u64 {
        packets.saturating_mul(self.max_datagram_size)
    }

    /// Datagrams may now be `mtu` bytes long.
    pub fn on_mtu(&mut self, mtu: u64) {
        self.max_datagram_size = mtu;
    }

    /// As [`next_send`](Self::next_send), but once the bucket is empty, nothing leaves until a whole quantum can, or
    /// a quarter of a smaller `window`, so that acknowledgments keep coming.
    pub fn next_quantum(
        &mut self,
        now: Instant,
        rate: u64,
        bytes: u64,
        window: u64,
    ) -> Option<Instant> {
        let gathered = rate.saturating_mul(self.gather_nanos) / 1_000_000_000;
        let quantum = self.full(self.quantum).max(gathered);
        let quantum = quantum.min(window / QUANTA_PER_WINDOW).max(bytes);
        if !self.refills && self.next_send(now, rate, bytes).is_none() {
            return None;
        }
        let allowed_at = self.next_send(now, rate, quantum);
        self.refills = allowed_at.is_some();
        allowed_at
    }

    /// When `bytes` may be sent at `rate` bytes per second; `None` is now.
    ///
    /// With the size of a whole burst, one wake-up is enough for all of it. For more bytes than the bucket
    /// holds, this is when the bucket is full.
    pub fn next_send(&mut self, now: Instant, rate: u64, bytes: u64) -> Option<Instant> {
        self.next_send_from(self.capacity(rate), now, rate, bytes)
    }

    /// The bucket at `rate`, as nanoseconds.
    fn capacity(&self, rate: u64) -> u64 {
        let burst = self.full(self.burst_packets.max(self.quantum));
        cost(rate, burst).max(BURST_NANOS)
    }

    /// As [`next_send`](Self::next_send), but with the smallest bursts, however high the rate:
    /// for a window that the path is not known to carry (RFC 9002, section 7.7).
    pub fn next_send_spread(&mut self, now: Instant, rate: u64, bytes: u64) -> Option<Instant> {
        self.next_send_from(self.capacity_spread(rate), now, rate, bytes)
    }

    fn capacity_spread(&self, rate: u64) -> u64 {
        cost(rate, self.full(self.burst_packets))
    }

    /// The time until the last of `bytes` leaves if they are sent in packets at `rate` from now on; quanta do not count.
    pub fn wait(&self, now: Instant, rate: u64, bytes: u64) -> Duration {
        self.wait_from(self.capacity(rate), now, rate, bytes)
    }

    /// As [`wait`](Self::wait), but with the smallest bursts, as [`next_send_spread`](Self::next_send_spread).
    pub fn wait_spread(&self, now: Instant, rate: u64, bytes: u64) -> Duration {
        self.wait_from(self.capacity_spread(rate), now, rate, bytes)
    }

    fn wait_from(&self, capacity: u64, now: Instant, rate: u64, bytes: u64) -> Duration {
        let capacity = Duration::from_nanos(capacity);
        let missing = self.full_at.saturating_since(now).min(capacity);
        let cost = Duration::from_nanos(cost(rate, bytes));
        (missing + cost).saturating_sub(capacity)
    }

    /// As [`next_send`](Self::next_send), for a bucket of `capacity`, as nanoseconds at the rate.
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
        // The bucket cannot be emptier than empty at the present rate, regardless of earlier rates.
        self.full_at = self.full_at.min(now + Duration::from_nanos(capacity));
        let missing = capacity - cost(rate, bytes).min(capacity);
        let allowed_at = self.full_at - Duration::from_nanos(missing);
        (allowed_at > now).then_some(allowed_at)
    }

    /// `bytes` were sent at `rate` bytes per second.
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
