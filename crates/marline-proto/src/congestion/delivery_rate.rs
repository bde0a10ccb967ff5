//! Delivery rate estimation (draft-cheng-iccrg-delivery-rate-estimation).

use std::time::Duration;

use crate::Instant;
use crate::samples::{PacketLoss, RateSample, RateSnapshot};

/// Measures the delivery rate of one path, one sample per ACK frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryRate {
    /// Bytes delivered in total.
    delivered: u64,
    delivered_at: Instant,
    /// Bytes declared lost in total, modulo 2^32.
    lost: u32,
    /// Send time of the first packet of the present sending interval.
    first_sent_at: Instant,
    /// Delivered bytes up to which samples are application-limited; 0 if they are not.
    app_limited_until: u64,
    /// Newest packet acknowledged by the ACK frame in progress.
    newest: Option<Newest>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    sent_at: Instant,
    rate: RateSnapshot,
}

impl DeliveryRate {
    /// An estimator without sent packets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a sent packet that adds `bytes` to the `bytes_in_flight` before it.
    pub fn on_sent(&mut self, now: Instant, bytes_in_flight: u64, bytes: u64) -> RateSnapshot {
        if bytes_in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        RateSnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: u32::try_from(bytes_in_flight.saturating_add(bytes)).unwrap_or(u32::MAX),
            lost: self.lost,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// Records that the application has nothing to send while the window has room: samples of the
    /// `bytes_in_flight` and later packets are application-limited.
    pub fn on_app_limited(&mut self, bytes_in_flight: u64) {
        self.app_limited_until = self.delivered.saturating_add(bytes_in_flight).max(1);
    }

    /// Records the first acknowledgment of a packet of `bytes` bytes that was sent at `sent_at`.
    pub fn on_packet_acked(
        &mut self,
        now: Instant,
        packet: &RateSnapshot,
        sent_at: Instant,
        bytes: u64,
    ) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = now;
        let is_newer = self.newest.is_none_or(|newest| {
            (packet.delivered, sent_at) >= (newest.rate.delivered, newest.sent_at)
        });
        if is_newer {
            self.newest = Some(Newest {
                sent_at,
                rate: *packet,
            });
        }
    }

    /// `bytes` of which no [snapshot](Self::on_sent) was kept are acknowledged: they measure nothing.
    pub(crate) fn on_delivered(&mut self, now: Instant, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = now;
    }

    /// Packet `packet_number` of `bytes` bytes, sent at `sent_at`, is declared lost.
    pub fn on_packet_lost(
        &mut self,
        packet_number: u64,
        packet: &RateSnapshot,
        sent_at: Instant,
        bytes: u64,
    ) -> PacketLoss {
        self.lost = self.lost.wrapping_add(bytes as u32);
        PacketLoss {
            packet_number,
            bytes,
            sent_at,
            in_flight_at_send: packet.in_flight.into(),
            lost: self.lost_since(packet),
            delivered_total: self.delivered,
            app_limited: packet.app_limited,
        }
    }

    /// Ends an ACK frame: returns its sample, if it acknowledged any packet. Samples over less than
    /// `min_rtt` reflect bursts, not a rate, and are omitted.
    pub fn finish(&mut self, min_rtt: Duration) -> Option<RateSample> {
        let Newest {
            sent_at,
            rate: newest,
        } = self.newest.take()?;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.first_sent_at = sent_at;
        let sending = sent_at - newest.first_sent_at;
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
            in_flight_at_send: newest.in_flight.into(),
            lost: self.lost_since(&newest),
            app_limited: newest.app_limited,
        })
    }

    fn lost_since(&self, packet: &RateSnapshot) -> u64 {
        self.lost.wrapping_sub(packet.lost).into()
    }

    /// Bytes delivered in total.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests;
