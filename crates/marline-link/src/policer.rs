//! Policers: a rate that is enforced without a queue.

use crate::bucket::Bucket;
use crate::{DropReason, Filter, Packet, Time};

/// A token bucket that drops packets that exceed it, and passes conforming ones without delay (RFC 2697 with only a
/// committed burst).
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    bucket: Bucket,
}

impl Policer {
    /// Passes `bits_per_second` of IP packets in the long term, and bursts of `burst_bytes`. The bucket is full
    /// initially.
    pub const fn new(bits_per_second: u64, burst_bytes: u64) -> Self {
        Self {
            bucket: Bucket::new(bits_per_second, burst_bytes),
        }
    }
}

impl Filter for Policer {
    fn inspect<B>(&mut self, now: Time, packet: &mut Packet<B>) -> Option<DropReason> {
        (!self.bucket.take(now, packet.size)).then_some(DropReason::Policed)
    }
}

#[cfg(test)]
mod tests;
