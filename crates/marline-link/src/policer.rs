//! Policers: a rate that is enforced without a queue.

use crate::{DropReason, Filter, Packet, Time};

/// Billionths of a bit in a byte: a rate of 1 bit per second is one billionth of a bit per nanosecond.
const BYTE: u128 = 8_000_000_000;

/// A token bucket that drops what exceeds it: what conforms passes at once, as it came (RFC 2697 with a committed burst
/// alone).
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    /// Bits per second.
    rate: u64,
    /// What the bucket holds, and what is in it, in billionths of a bit.
    size: u128,
    tokens: u128,
    /// When it was last filled.
    filled: Time,
}

impl Policer {
    /// Passes `bits_per_second` of IP packets over time, and `burst_bytes` at once. The bucket is full at first.
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
