//! Delays that vary. Not of the draft.
//!
//! The draft's path holds what the bottleneck delivers in the smallest round-trip time. Where a radio's delays vary by more
//! than that, packets are under way for much longer without a queue: twice that product limits the rate, the measured
//! bandwidth falls with it, and the window with the bandwidth. So this controller adds to the delay of the path what its
//! round-trip times vary by. A queue, of its own or of others, changes slowly: it adds little.

use std::time::Duration;

use super::Bbr3;
use crate::samples::RttView;

/// Mean deviations that nearly all round-trip times are within, as for the probe timeout (RFC 9002, section 6.2.1).
const DEVIATIONS: u32 = 4;

/// Variations of up to this part of the smallest round-trip time add nothing: the window has twice the product.
const TOLERATED: u32 = 2;

impl Bbr3 {
    /// What the delays of the path vary by, beyond what the window has room for.
    pub(super) fn update_jitter(&mut self, rtt: &RttView) {
        self.jitter = match self.min_rtt.get() {
            Some(smallest) if self.config.jitter && self.full_pipe.is_reached() => {
                (rtt.variance * DEVIATIONS).saturating_sub(smallest / TOLERATED)
            }
            _ => Duration::ZERO,
        };
    }
}
