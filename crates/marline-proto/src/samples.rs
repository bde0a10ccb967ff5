//! Samples that recovery measures and congestion control reads: plain numbers.
//!
//! Bytes are UDP payload bytes of packets that count as in flight (RFC 9002, section 2).

use std::time::Duration;

use crate::Instant;

/// Round-trip times of one path (RFC 9002, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttView {
    /// The newest sample, acknowledgment delay not subtracted.
    pub latest: Duration,
    /// The newest sample without the acknowledgment delay that the peer reports, as far as that may be subtracted (RFC 9002,
    /// section 5.3): what the path took.
    pub adjusted: Duration,
    /// Exponentially weighted average of adjusted samples.
    pub smoothed: Duration,
    /// Smallest sample so far.
    pub min: Duration,
    /// Mean deviation of the samples.
    pub variance: Duration,
}

/// One measurement of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered during `interval`.
    pub delivered: u64,
    /// The longer of the time it took to send them and the time it took to acknowledge them; never
    /// zero.
    pub interval: Duration,
    /// Bytes that had been delivered when the newest acknowledged packet was sent.
    pub prior_delivered: u64,
    /// Bytes delivered since the connection began.
    pub delivered_total: u64,
    /// Bytes in flight when the newest acknowledged packet was sent, that packet included.
    pub in_flight_at_send: u64,
    /// Bytes declared lost since it was sent.
    pub lost: u64,
    /// Whether sending was app-limited during part of the interval.
    pub app_limited: bool,
}

impl RateSample {
    /// The rate in bytes per second.
    pub fn bytes_per_second(&self) -> u64 {
        let nanos = self.interval.as_nanos().max(1);
        let scaled = self.delivered.checked_mul(1_000_000_000);
        // 64 bits suffice for any sample but absurd ones, and are divided faster.
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
    /// Bytes in flight, this packet included; at most 2^32 - 1.
    pub(crate) in_flight: u32,
    /// Bytes declared lost, modulo 2^32.
    pub(crate) lost: u32,
    pub(crate) app_limited: bool,
}

/// A packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentSample {
    /// Its number.
    pub packet_number: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes in flight, this packet included.
    pub bytes_in_flight: u64,
    /// Whether sending is app-limited: only a lack of data keeps the window from being full.
    pub app_limited: bool,
}

/// An ACK frame acknowledged packets for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSample {
    /// Bytes it acknowledged that were in flight.
    pub bytes: u64,
    /// Bytes in flight afterwards.
    pub bytes_in_flight: u64,
    /// Bytes in flight before.
    pub prior_in_flight: u64,
    /// Largest packet number it acknowledged for the first time.
    pub largest_acked: u64,
    /// Largest packet number sent so far.
    pub largest_sent: u64,
    /// When packet `largest_acked` was sent.
    pub largest_acked_sent_at: Instant,
    /// The round-trip times after this ACK.
    pub rtt: RttView,
    /// Whether this ACK gave a new round-trip sample.
    pub rtt_updated: bool,
    /// The delivery rate, if one could be measured.
    pub rate: Option<RateSample>,
    /// Whether sending was app-limited: the window was not full when the ACK arrived.
    pub app_limited: bool,
}

/// One of the packets that were declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLoss {
    /// Its number.
    pub packet_number: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Instant,
    /// Bytes in flight then, this packet included.
    pub in_flight_at_send: u64,
    /// Bytes declared lost since it was sent, this packet included.
    pub lost: u64,
    /// Bytes delivered since the connection began.
    pub delivered_total: u64,
    /// Whether sending was app-limited when it was sent.
    pub app_limited: bool,
}

/// Packets were declared lost, all at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossSample {
    /// Bytes lost.
    pub bytes: u64,
    /// Packets lost.
    pub packets: u64,
    /// Largest packet number among the lost.
    pub largest_lost: u64,
    /// When the newest of the lost packets was sent.
    pub latest_sent_at: Instant,
    /// Largest packet number sent so far.
    pub largest_sent: u64,
    /// Bytes in flight afterwards.
    pub bytes_in_flight: u64,
    /// Whether the losses establish persistent congestion (RFC 9002, section 7.6).
    pub persistent: bool,
}

/// The peer reported packets marked Congestion Experienced (RFC 9002, section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeSample {
    /// When the largest packet of the reporting ACK frame was sent.
    pub sent_at: Instant,
    /// How many marks are new.
    pub new_ce: u64,
    /// Whether the packets carried ECT(1): a short queue marked them, and a part of all packets is marked all the time
    /// (RFC 9331).
    pub l4s: bool,
    /// Largest packet number sent so far.
    pub largest_sent: u64,
}

/// `factor` times `duration`, rounded to a nanosecond; zero for a negative factor.
pub(crate) fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::from_nanos((duration.as_nanos() as f64 * factor).round() as u64)
}
