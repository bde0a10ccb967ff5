//! Samples from recovery for congestion control.
//!
//! Bytes are UDP payload bytes of packets that count as in flight (RFC 9002, section 2).

use std::time::Duration;

use crate::Instant;

/// Round-trip times of one path (RFC 9002, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttView {
    /// Latest sample, acknowledgment delay included.
    pub latest: Duration,
    /// Latest sample without the acknowledgment delay reported by the peer, as far as that may be subtracted (RFC 9002,
    /// section 5.3).
    pub adjusted: Duration,
    /// Exponentially weighted average of adjusted samples.
    pub smoothed: Duration,
    /// Minimum of the samples.
    pub min: Duration,
    /// Mean deviation of the samples.
    pub variance: Duration,
}

/// One measurement of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered during `interval`.
    pub delivered: u64,
    /// Longer of the time to send them and the time to acknowledge them; never zero.
    pub interval: Duration,
    /// Bytes delivered in total when the newest acknowledged packet was sent.
    pub prior_delivered: u64,
    /// Bytes delivered in total.
    pub delivered_total: u64,
    /// Bytes in flight when the newest acknowledged packet was sent, including that packet.
    pub in_flight_at_send: u64,
    /// Bytes declared lost since then.
    pub lost: u64,
    /// Whether sending was app-limited during part of the interval.
    pub app_limited: bool,
}

impl RateSample {
    /// The rate in bytes per second.
    pub fn bytes_per_second(&self) -> u64 {
        let nanos = self.interval.as_nanos().max(1);
        let scaled = self.delivered.checked_mul(1_000_000_000);
        // 64 bits suffice for realistic samples, and are divided faster.
        if let (Some(scaled), Ok(nanos)) = (scaled, u64::try_from(nanos)) {
            return scaled / nanos;
        }
        u64::try_from(u128::from(self.delivered) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
    }
}

/// State of the delivery-rate estimator when a packet was sent; stored with the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSnapshot {
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Instant,
    pub(crate) first_sent_at: Instant,
    /// Bytes in flight including this packet; at most 2^32 - 1.
    pub(crate) in_flight: u32,
    /// Bytes declared lost, modulo 2^32.
    pub(crate) lost: u32,
    pub(crate) app_limited: bool,
}

/// A sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentSample {
    /// Packet number.
    pub packet_number: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes in flight including this packet.
    pub bytes_in_flight: u64,
    /// Whether sending is app-limited: only a lack of data keeps the window from being filled.
    pub app_limited: bool,
}

/// The newly acknowledged packets of an ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSample {
    /// Newly acknowledged bytes that were in flight.
    pub bytes: u64,
    /// Bytes in flight afterwards.
    pub bytes_in_flight: u64,
    /// Bytes in flight before.
    pub prior_in_flight: u64,
    /// Largest newly acknowledged packet number.
    pub largest_acked: u64,
    /// Largest packet number sent so far.
    pub largest_sent: u64,
    /// Send time of packet `largest_acked`.
    pub largest_acked_sent_at: Instant,
    /// The round-trip times after this ACK.
    pub rtt: RttView,
    /// Whether this ACK provided a new RTT sample.
    pub rtt_updated: bool,
    /// The delivery rate, if one could be measured.
    pub rate: Option<RateSample>,
    /// Whether sending was app-limited: the window was not full when the ACK arrived.
    pub app_limited: bool,
}

/// One of the packets that were declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLoss {
    /// Packet number.
    pub packet_number: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Send time.
    pub sent_at: Instant,
    /// Bytes in flight then, including this packet.
    pub in_flight_at_send: u64,
    /// Bytes declared lost since it was sent, including this packet.
    pub lost: u64,
    /// Bytes delivered in total.
    pub delivered_total: u64,
    /// Whether sending was app-limited when it was sent.
    pub app_limited: bool,
}

/// Packets declared lost at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossSample {
    /// Number of bytes lost.
    pub bytes: u64,
    /// Number of packets lost.
    pub packets: u64,
    /// Largest packet number among the lost packets.
    pub largest_lost: u64,
    /// Send time of the newest of the lost packets.
    pub latest_sent_at: Instant,
    /// Largest packet number sent so far.
    pub largest_sent: u64,
    /// Bytes in flight afterwards.
    pub bytes_in_flight: u64,
    /// Whether the losses establish persistent congestion (RFC 9002, section 7.6).
    pub persistent: bool,
}

/// Packets newly reported as Congestion Experienced (RFC 9002, section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeSample {
    /// Send time of the largest packet acknowledged by the reporting ACK frame.
    pub sent_at: Instant,
    /// Number of new CE marks.
    pub new_ce: u64,
    /// Whether the packets carried ECT(1): a shallow queue marks them, and marks a share of packets at all times (RFC
    /// 9331).
    pub l4s: bool,
    /// Largest packet number sent so far.
    pub largest_sent: u64,
}

/// `factor` times `duration`, rounded to a nanosecond; zero for a negative factor.
pub(crate) fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::from_nanos((duration.as_nanos() as f64 * factor).round() as u64)
}
