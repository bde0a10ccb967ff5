//! Loss detection (RFC 9002, section 6.1).

mod adaptive;
pub mod conformance;
mod fixed;

use std::fmt::Debug;
use std::time::Duration;

pub use adaptive::{Adaptive, AdaptiveLimits};
pub use fixed::{Fixed, Thresholds};

use crate::Instant;
use crate::samples::RttView;
use crate::settings::{Make, Registry, Spec};

/// Loss detectors by name.
pub const DETECTORS: Registry<Make<dyn LossDetector>> = Registry::new(
    "loss detection",
    &[
        &fixed::RFC9002,
        &fixed::GQUIC,
        &fixed::PATIENT,
        &adaptive::ENTRY,
    ],
);

/// An outstanding packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView {
    /// Largest acknowledged packet number minus this one's; 0 if no later packet is acknowledged.
    pub packets_after: u64,
    /// Send time.
    pub sent_at: Instant,
}

/// The threshold that a lost packet exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Packet threshold: a packet sent sufficiently later was acknowledged.
    Packet,
    /// Time threshold: sufficient time has passed since it was sent.
    Time,
}

/// The classification of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is lost.
    Lost(Cause),
    /// The packet will be lost at this time, unless it is acknowledged before.
    Until(Instant),
    /// The packet cannot be lost yet: no later packet is acknowledged.
    Keep,
}

/// A spurious loss: a packet declared lost was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spurious {
    /// Largest acknowledged packet number, before its own acknowledgment, minus its number.
    pub packets_after: u64,
    /// Time from its transmission to its acknowledgment.
    pub elapsed: Duration,
}

/// Decides which packets are lost.
pub trait LossDetector: Send + Debug {
    /// Classifies one packet at `now`.
    fn is_lost(&self, packet: &PacketView, rtt: &RttView, now: Instant) -> Verdict {
        if packet.packets_after == 0 {
            return Verdict::Keep;
        }
        if self
            .packet_threshold()
            .is_some_and(|threshold| packet.packets_after >= threshold)
        {
            return Verdict::Lost(Cause::Packet);
        }
        let deadline = packet.sent_at + self.time_threshold(rtt);
        if now >= deadline {
            Verdict::Lost(Cause::Time)
        } else {
            Verdict::Until(deadline)
        }
    }

    /// Time threshold: time since sending after which a packet is lost, once a later one is acknowledged.
    fn time_threshold(&self, rtt: &RttView) -> Duration;

    /// Packet threshold in packet numbers below the largest acknowledged one; `None` to use the
    /// time threshold only.
    fn packet_threshold(&self) -> Option<u64>;

    /// Called once for each loss event.
    fn on_loss(&mut self) {}

    /// Called when a packet declared lost was acknowledged.
    fn on_spurious_loss(&mut self, _spurious: &Spurious, _rtt: &RttView) {}

    /// Short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// The detector's notation in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

#[cfg(test)]
mod tests;
