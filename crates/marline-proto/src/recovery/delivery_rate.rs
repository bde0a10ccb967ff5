//! How fast the path delivers (draft-cheng-iccrg-delivery-rate-estimation).

use std::time::Duration;

use crate::Instant;
use crate::samples::{RateSample, RateSnapshot};

/// Measures the delivery rate of one path, one sample per ACK frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryRate {
    /// Bytes delivered so far.
    delivered: u64,
    delivered_at: Instant,
    /// When the first packet of the present sending interval left.
    first_sent_at: Instant,
    /// Samples are application limited until this much is delivered; 0 if they are not.
    app_limited_until: u64,
    /// The newest packet that the ACK frame being read acknowledges.
    newest: Option<RateSnapshot>,
}

impl DeliveryRate {
    /// Nothing sent, nothing delivered.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet leaves while `bytes_in_flight` bytes are in flight without it.
    pub fn on_sent(&mut self, now: Instant, bytes_in_flight: u64) -> RateSnapshot {
        if bytes_in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        RateSnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            sent_at: now,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// The application has nothing to send while the window has room: what `bytes_in_flight` are
    /// in flight, and what follows, is no measure of the path.
    pub fn on_app_limited(&mut self, bytes_in_flight: u64) {
        self.app_limited_until = self.delivered.saturating_add(bytes_in_flight).max(1);
    }

    /// A packet of `bytes` bytes is acknowledged for the first time.
    pub fn on_packet_acked(&mut self, now: Instant, packet: &RateSnapshot, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = now;
        let is_newer = self.newest.is_none_or(|newest| {
            (packet.delivered, packet.sent_at) >= (newest.delivered, newest.sent_at)
        });
        if is_newer {
            self.newest = Some(*packet);
        }
    }

    /// The ACK frame is read: gives its sample, if it acknowledged anything. A sample over less
    /// than `min_rtt` is bursts arriving together, not a rate, and is left out.
    pub fn finish(&mut self, min_rtt: Duration) -> Option<RateSample> {
        let newest = self.newest.take()?;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.first_sent_at = newest.sent_at;
        let sending = newest.sent_at - newest.first_sent_at;
        let acknowledging = self.delivered_at - newest.delivered_at;
        let interval = sending.max(acknowledging);
        if interval.is_zero() || interval < min_rtt {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - newest.delivered,
            interval,
            prior_delivered: newest.delivered,
            delivered_total: self.delivered,
            app_limited: newest.app_limited,
        })
    }

    /// Bytes delivered so far.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests;
