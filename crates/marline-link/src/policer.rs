//! Policers: a rate that is enforced without a queue.

use crate::{DropReason, Filter, Packet, Time};

/// Billionths of a bit in a byte: a rate of 1 bit per second is one billionth of a bit per nanosecond.
const BYTE: u128 = 8_000_000_000;

/// A token bucket that drops packets that exceed it, and passes conforming ones without delay (RFC 2697 with only a
/// committed burst).
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    /// Rate in bits per second.
    rate: u64,
    /// Size and content of the bucket, in billionths of a bit.
    size: u128,
    tokens: u128,
    /// Time of the last refill.
    filled: Time,
}

impl Policer {
    /// Passes `bits_per_second` of IP packets in the long term, and bursts of `burst_bytes`. The bucket is full
    /// initially.
    pub const fn new(bits_per_second: u64, burst_bytes: u64) -> Self {
        let size = burst_bytes as u128 * BYTE;
        Self {
            rate: bits_per_second,
            size,
            tokens: size,
            filled: Time::ZERO,
        }
    }
}

impl Filter for Policer {
    fn inspect<B>(&mut self, now: Time, packet: &mut Packet<B>) -> Option<DropReason> {
        let gained = u128::from(self.rate) * now.since(self.filled).as_nanos();
        self.tokens = self.tokens.saturating_add(gained).min(self.size);
        self.filled = now;
        match self.tokens.checked_sub(u128::from(packet.size) * BYTE) {
            Some(left) => {
                self.tokens = left;
                None
            }
            None => Some(DropReason::Policed),
        }
    }
}

#[cfg(test)]
mod tests;
