//! Acknowledgment policies (RFC 9000, section 13.2).

pub mod conformance;
mod decimation;
mod every_n;
mod frequency;
mod peer_requested;
mod request;

use std::fmt::Debug;
use std::time::Duration;

pub use decimation::{DecimateUntilRequested, Decimation};
pub use every_n::EveryN;
pub(crate) use frequency::{MIN_ACK_DELAY, PeerRequest};
pub use peer_requested::PeerRequested;
pub use request::AckFrequencyConfig;
pub(crate) use request::{OwnRequest, ReceiverView, SendView};

use crate::Instant;
use crate::settings::{Domain, FormerName, Make, Registry, Spec};

/// Acknowledgment policies by name.
pub const POLICIES: Registry<Make<dyn AckPolicy>> = Registry::new(
    "acknowledgment policy",
    &[&peer_requested::ENTRY, &every_n::ENTRY, &decimation::ENTRY],
)
.with_former(&[
    FormerName::read("every {}", "peer_requested(packets={})"),
    FormerName::read("as_asked", "peer_requested"),
    FormerName::read("as_asked({})", "peer_requested({})"),
]);

/// Range of acknowledgment delays: transport parameters have 14 bits of milliseconds.
const MAX_DELAY: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(16));

/// Default `max_ack_delay` (RFC 9000, section 18.2).
pub const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// A received ack-eliciting packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedView {
    /// Arrival time.
    pub now: Instant,
    /// Packet number.
    pub number: u64,
    /// Largest number among received ack-eliciting packets, this one included.
    pub largest: u64,
    /// Largest Acknowledged of the ACK frames sent so far.
    pub largest_acked: Option<u64>,
    /// Smallest missing number below `largest`, and not below `largest_acked` less
    /// [`AckPolicy::reordering_threshold`].
    pub smallest_missing: Option<u64>,
    /// Ack-eliciting packets since the last ACK frame was sent, this one included.
    pub unacked: u64,
    /// Arrival time of the first of those.
    pub oldest_unacked_at: Instant,
    /// Ack-eliciting packets received on the path, this one included.
    pub total_received: u64,
    /// Whether its number is smaller than an earlier one, or leaves a gap (RFC 9000, section 13.2.1).
    pub out_of_order: bool,
    /// Whether it was marked Congestion Experienced (CE).
    pub ce: bool,
    /// Smallest round-trip time of the path.
    pub min_rtt: Duration,
}

/// The time of the next ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// Immediately.
    Now,
    /// At this time, or earlier with another packet.
    By(Instant),
    /// No acknowledgment is due.
    NotNeeded,
}

/// A request of the peer with ACK_FREQUENCY (draft-ietf-quic-ack-frequency-14, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Ack-eliciting threshold: packets that may arrive without an immediate acknowledgment.
    pub threshold: u64,
    /// Requested Max Ack Delay.
    pub max_delay: Duration,
    /// Reordering threshold, in packet numbers: the extent of a gap that is reported immediately; 0 disables that.
    pub reordering_threshold: u64,
}

/// Decides when received packets are acknowledged.
pub trait AckPolicy: Send + Debug {
    /// Called when an ack-eliciting packet arrived.
    fn on_packet(&mut self, packet: &ReceivedView) -> AckDecision;

    /// Called when an ACK frame was sent, for any reason.
    fn on_ack_sent(&mut self) {}

    /// Called when the peer requests a frequency; only [`PeerRequested`] and [`DecimateUntilRequested`] comply.
    fn on_frequency(&mut self, _requested: &Requested) {}

    /// Maximum delay of an acknowledgment.
    fn max_ack_delay(&self) -> Duration;

    /// Number of packet numbers below the last reported one for which a gap still counts as
    /// unreported; sets [`ReceivedView::smallest_missing`].
    fn reordering_threshold(&self) -> u64 {
        1
    }

    /// Short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// The policy's notation in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

#[cfg(test)]
mod tests;
