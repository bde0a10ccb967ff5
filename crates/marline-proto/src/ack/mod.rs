//! When to acknowledge (RFC 9000, section 13.2).

mod as_asked;
pub mod conformance;
mod decimation;
mod every_n;
mod frequency;
mod request;

use std::fmt::Debug;
use std::time::Duration;

pub use as_asked::AsAsked;
pub use decimation::{Decimation, UntilAsked};
pub use every_n::EveryN;
pub(crate) use frequency::{MIN_ACK_DELAY, PeerRequest};
pub(crate) use request::{OwnRequest, ReceiverView, SendView};

use crate::Instant;
use crate::settings::{Domain, Make, Registry, Spec};

/// Policies of acknowledgment, by name.
pub const POLICIES: Registry<Make<dyn AckPolicy>> = Registry::new(
    "policy of acknowledgment",
    &[&as_asked::ENTRY, &every_n::ENTRY, &decimation::ENTRY],
);

/// Times that an acknowledgment can wait at most: transport parameters have 14 bits of milliseconds.
const MAX_DELAY: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(16));

/// The longest a receiver waits by default (RFC 9000, section 18.2).
pub const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// An ack-eliciting packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedView {
    /// When it arrived.
    pub now: Instant,
    /// Its number.
    pub number: u64,
    /// Largest number among received ack-eliciting packets, this one included.
    pub largest: u64,
    /// Largest Acknowledged of the ACK frames sent so far.
    pub largest_acked: Option<u64>,
    /// Smallest number below `largest` that did not arrive, above `largest_acked` less
    /// [`AckPolicy::reordering_threshold`].
    pub smallest_missing: Option<u64>,
    /// Ack-eliciting packets since the last ACK frame was sent, this one included.
    pub unacked: u64,
    /// When the first of those arrived.
    pub oldest_unacked_at: Instant,
    /// Ack-eliciting packets received on the path, this one included.
    pub total_received: u64,
    /// Whether its number is smaller than one received before, or leaves a gap after it
    /// (RFC 9000, section 13.2.1).
    pub out_of_order: bool,
    /// Whether it was marked Congestion Experienced.
    pub ce: bool,
    /// Smallest round-trip time of the path.
    pub min_rtt: Duration,
}

/// When to send the next ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// At once.
    Now,
    /// At this moment, or with a packet that leaves earlier.
    By(Instant),
    /// Nothing needs an acknowledgment.
    NotNeeded,
}

/// What a peer asks with ACK_FREQUENCY (draft-ietf-quic-ack-frequency-14, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Ack-eliciting packets that may arrive without an immediate acknowledgment.
    pub threshold: u64,
    /// The longest an acknowledgment may wait.
    pub max_delay: Duration,
    /// How far a gap may reach back before it is reported at once; 0 is never.
    pub reordering_threshold: u64,
}

/// Decides when received packets are acknowledged.
pub trait AckPolicy: Send + Debug {
    /// An ack-eliciting packet arrived.
    fn on_packet(&mut self, packet: &ReceivedView) -> AckDecision;

    /// An ACK frame left, for whatever reason.
    fn on_ack_sent(&mut self) {}

    /// The peer asks for another frequency; only [`AsAsked`] and [`UntilAsked`] comply.
    fn on_frequency(&mut self, _requested: &Requested) {}

    /// The longest it lets a packet wait.
    fn max_ack_delay(&self) -> Duration;

    /// How many packet numbers below the last reported one a gap still counts as not reported; sets
    /// [`ReceivedView::smallest_missing`].
    fn reordering_threshold(&self) -> u64 {
        1
    }

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// How it is written in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

#[cfg(test)]
mod tests;
