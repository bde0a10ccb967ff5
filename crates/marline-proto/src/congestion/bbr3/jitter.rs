//! Delay variation. Not of the draft.
//!
//! The draft's path holds the delivery of the bottleneck in the smallest round-trip time. Where a radio's delays vary by
//! more than that, packets take much longer without a queue: twice that product limits the rate, the measured bandwidth
//! falls with it, and the window with the bandwidth. So this controller adds the variation of round-trip times to the delay
//! of the path. A queue, of its own or of cross traffic, changes slowly: it adds little.

use std::time::Duration;

use super::Bbr3;
use crate::samples::RttView;

/// Mean deviations that cover nearly all round-trip times, as for the probe timeout (RFC 9002, section 6.2.1).
const DEVIATIONS: u32 = 4;

/// Variations of up to one part in this many of the smallest round-trip time add nothing: the window has twice the product.
const TOLERATED: u32 = 2;

impl Bbr3 {
    /// Updates the delay variation of the path in excess of the room in the window.
    pub(super) fn update_jitter(&mut self, rtt: &RttView) {
        self.jitter = match self.min_rtt.get() {
            Some(smallest) if self.config.jitter && self.full_pipe.is_reached() => {
                (rtt.variance * DEVIATIONS).saturating_sub(smallest / TOLERATED)
            }
            _ => Duration::ZERO,
        };
    }
}
