//! Which packets are lost (RFC 9002, section 6.1).

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

/// Loss detectors, by name.
pub const DETECTORS: Registry<Make<dyn LossDetector>> = Registry::new(
    "loss detection",
    &[
        &fixed::RFC9002,
        &fixed::GQUIC,
        &fixed::PATIENT,
        &adaptive::ENTRY,
    ],
);

/// A packet that is neither acknowledged nor declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView {
    /// Largest acknowledged packet number minus this one's; 0 if no later packet is acknowledged.
    pub packets_after: u64,
    /// When it was sent.
    pub sent_at: Instant,
}

/// Which threshold a lost packet crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Enough later packets were sent before one that is acknowledged.
    Packet,
    /// Enough time passed since it was sent.
    Time,
}

/// What to think of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is lost.
    Lost(Cause),
    /// It will be lost at this moment, unless it is acknowledged before.
    Until(Instant),
    /// It cannot be lost yet: no later packet is acknowledged.
    Keep,
}

/// A packet was acknowledged that had been declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spurious {
    /// Largest acknowledged packet number, before its own acknowledgment, minus its number.
    pub packets_after: u64,
    /// Time from sending it to its acknowledgment.
    pub elapsed: Duration,
}

/// Decides which packets are lost.
pub trait LossDetector: Send + Debug {
    /// Judges one packet at `now`.
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

    /// Time since sending after which a packet with a later one acknowledged is lost.
    fn time_threshold(&self, rtt: &RttView) -> Duration;

    /// How far behind the largest acknowledged packet a lost one is, in packet numbers; `None` if
    /// only time decides.
    fn packet_threshold(&self) -> Option<u64>;

    /// Packets were declared lost; called once for each moment that declared some.
    fn on_loss(&mut self) {}

    /// A packet had been declared lost and was not.
    fn on_spurious_loss(&mut self, _spurious: &Spurious, _rtt: &RttView) {}

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// How it is written in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

#[cfg(test)]
mod tests;
