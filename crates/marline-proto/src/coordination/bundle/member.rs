//! Reports of a member, the engine's view of it, and the instructions that it gets.

use std::time::Duration;

use super::SharedController;
use super::decision::MemberDecision;

/// A report of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A loss event, or a rise of the round-trip time that ended slow start.
    Fluctuation {
        /// Whether it was a loss.
        loss: bool,
        /// Whether the loss established persistent congestion (RFC 9002, section 7.6): it does not
        /// affect other members.
        persistent: bool,
        /// The window before the member reacted, in bytes.
        before: u64,
        /// The window after the member reacted, in bytes.
        after: u64,
    },
    /// A packet sent after the previous report is acknowledged: a round trip is complete.
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
    /// Whether the controller works with a rate rather than a window.
    pub rate_based: bool,
    /// The rate estimate, in bytes per second; `None` before there is one.
    pub rate: Option<u64>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Whether data is in flight and gets acknowledged, and sending is not app-limited.
    pub active: bool,
}

/// Instructions for a member. Empty fields leave things as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directive {
    /// Enter slow start (`true`), or leave it (`false`).
    pub slow_start: Option<bool>,
    /// The congestion window, in bytes.
    pub window: Option<u64>,
    /// The rate estimate, in bytes per second.
    pub rate: Option<u64>,
    /// The controller that the member shares with the others from now on, in the place of its own.
    pub shared: Option<SharedController>,
    /// The part of one connection's growth that the member may take.
    pub share: Option<f64>,
    /// The decision behind it.
    pub decision: Option<MemberDecision>,
}

/// A directive for one member; `M` is the key by which the bundle's owner knows its members.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberDirective<M> {
    /// Whom it is for.
    pub member: M,
    /// The instructions.
    pub directive: Directive,
}
