//! What a member reports, how it stands, and what it is told.

use std::sync::Arc;
use std::time::Duration;

use crate::observe::events::{BundleAction, BundlePhase, BundleTrigger};

/// What a member reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A loss event, or the rise of the round-trip time that ends slow start.
    Fluctuation {
        /// Whether it was a loss.
        loss: bool,
        /// Whether the loss established persistent congestion (RFC 9002, section 7.6): it stays the
        /// member's own.
        persistent: bool,
        /// The window before the member reacted, in bytes.
        before: u64,
        /// And after.
        after: u64,
    },
    /// A packet sent after the last report is acknowledged.
    Round,
}

/// A member, as the engine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// The congestion window, in bytes.
    pub window: u64,
    /// Size of a full datagram, in bytes.
    pub datagram: u64,
    /// Whether the window still searches for the path's capacity.
    pub in_slow_start: bool,
    /// Whether the controller has a rate rather than a window.
    pub rate_based: bool,
    /// The rate estimate, in bytes per second; `None` before there is one.
    pub rate: Option<u64>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Whether data is in flight, is not what limits sending, and gets acknowledged.
    pub active: bool,
}

/// What a member shall do. Empty fields leave things as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directive {
    /// Enter slow start, or leave it.
    pub slow_start: Option<bool>,
    /// The congestion window, in bytes.
    pub window: Option<u64>,
    /// The rate estimate, in bytes per second.
    pub rate: Option<u64>,
    /// The part of one connection's growth that it may take.
    pub share: Option<f64>,
    /// Why, and the member's place in the lists.
    pub decision: Option<(Arc<Decision>, usize)>,
}

/// What the engine decided; windows in bytes, rates in bytes per second, one of each member that took
/// part.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Number of the bundle within its owner.
    pub bundle: u64,
    /// What it was about.
    pub trigger: BundleTrigger,
    /// What was done.
    pub action: BundleAction,
    /// Where the bundle stands afterwards.
    pub phase: BundlePhase,
    /// Place of the member to which the event happened.
    pub affected: Option<usize>,
    /// Growth that decides on slow start (gamma i).
    pub gamma: f64,
    /// Events that counted (i).
    pub fluctuations: u64,
    /// Before, and after the affected member's own reaction.
    pub before: Vec<u64>,
    /// After.
    pub after: Vec<u64>,
}
