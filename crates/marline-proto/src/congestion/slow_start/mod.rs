//! Ending slow start before losses occur.

mod confirmed;
pub mod conformance;
mod driver;
mod hybrid;
mod hystart_pp;
mod none;

use std::fmt::Debug;
use std::time::Duration;

pub use confirmed::{ConfirmedConfig, ConfirmedExit};
pub(super) use driver::SlowStart;
pub use hybrid::{HybridConfig, HybridSlowStart, Round};
pub use hystart_pp::HyStartPp;
pub use none::NoExit;

use crate::settings::{Make, Registry, Spec};

/// The algorithms that end slow start, by name.
pub const EXITS: Registry<Make<dyn SlowStartExit>> = Registry::new(
    "exit from slow start",
    &[
        &none::ENTRY,
        &hybrid::ENTRY,
        &hystart_pp::ENTRY,
        &confirmed::ENTRY,
    ],
);

/// A sample of one acknowledgment in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStartSample {
    /// The newest round-trip time, acknowledgment delay not subtracted; `None` if this ACK gave
    /// none.
    pub rtt: Option<Duration>,
    /// Smallest round-trip time of the path so far, this sample included.
    pub min_rtt: Duration,
    /// The window, in bytes.
    pub window: u64,
    /// Size of a full datagram, in bytes.
    pub max_datagram_size: u64,
    /// The delivery rate in bytes per second; `None` if this ACK gave none, or sending was app-limited.
    pub rate: Option<u64>,
}

/// The continuation of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartDecision {
    /// Grow by the bytes acknowledged.
    Stay,
    /// Grow by the bytes acknowledged, divided by this number (at least 1).
    Slow(u64),
    /// End slow start at the present window.
    Exit,
}

/// Ends slow start when the round-trip time shows a growing queue.
pub trait SlowStartExit: Send + Debug {
    /// A round begins: packets sent from now on belong to it.
    fn on_round_start(&mut self);

    /// Packets were acknowledged in slow start.
    fn on_ack(&mut self, sample: &SlowStartSample) -> SlowStartDecision;

    /// Slow start begins anew.
    fn reset(&mut self);

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// Its notation in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

#[cfg(test)]
mod tests;
