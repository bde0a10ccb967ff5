//! Decisions of the engine of a bundle, and their reasons.

use std::sync::Arc;

/// The event that the engine was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecisionCause {
    /// A member joined.
    Joined,
    /// A loss event of a member.
    Loss,
    /// A member's round-trip time rose, which ended its slow start.
    SlowStartExit,
    /// Every member that takes part has completed a round trip.
    Round,
    /// A member that has migrated to another address joined.
    Moved,
}

/// The action of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecisionAction {
    /// Nothing.
    None,
    /// Split the initial window, or the windows that the other members have by now.
    Split,
    /// Synchronized windows and slow start after a fluctuation event.
    Synchronized,
    /// Counted the event as part of the previous one.
    Coalesced,
    /// Reduced all windows as one connection would reduce its own.
    BackedOff,
    /// Ended slow start permanently.
    Exited,
    /// Made the windows equal in congestion avoidance.
    Equalized,
    /// Made the rates equal.
    EqualizedRates,
    /// Replaced the member's controller by the one that the others share.
    Shared,
}

/// The phase of a bundle as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnginePhase {
    /// Members that leave slow start are put back into it.
    SlowStart,
    /// Slow start has ended permanently.
    CongestionAvoidance,
}

/// A decision of the engine; windows in bytes, rates in bytes per second, one for each member that took
/// part, in the order in which they joined.
#[derive(Clone, Debug, PartialEq)]
pub struct BundleDecision {
    /// Number of the bundle within its owner.
    pub bundle: u64,
    /// The event that the engine was asked about.
    pub cause: DecisionCause,
    /// The action taken.
    pub action: DecisionAction,
    /// Phase of the bundle after the decision.
    pub phase: EnginePhase,
    /// Index in the lists of the member to which the event happened.
    pub affected: Option<usize>,
    /// Growth that decides whether slow start goes on (gamma i).
    pub gamma: f64,
    /// Fluctuation events that counted so far (i).
    pub fluctuations: u64,
    /// Before the decision, and after the affected member's own reaction.
    pub before: Vec<u64>,
    /// After the decision.
    pub after: Vec<u64>,
}

/// A decision, as one of the members that took part gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberDecision {
    /// The decision for all members.
    pub decision: Arc<BundleDecision>,
    /// Index of this member in the lists of the decision.
    pub own: usize,
}
