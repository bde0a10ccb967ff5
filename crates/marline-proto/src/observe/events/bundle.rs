//! Decisions of a bundle's engine; these events are specific to marline.

use marline_wire::PathId;

use crate::coordination::bundle::{DecisionAction, DecisionCause, EnginePhase, MemberDecision};

/// The event that the engine handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleTrigger {
    /// A member joined.
    Joined,
    /// A loss event of a member.
    Loss,
    /// A member's round-trip time rose, which ended its slow start.
    SlowStartExit,
    /// Every participating member has completed a round trip.
    Round,
    /// A member joined after it migrated to another address.
    Moved,
}

impl From<DecisionCause> for BundleTrigger {
    fn from(cause: DecisionCause) -> Self {
        match cause {
            DecisionCause::Joined => Self::Joined,
            DecisionCause::Loss => Self::Loss,
            DecisionCause::SlowStartExit => Self::SlowStartExit,
            DecisionCause::Round => Self::Round,
            DecisionCause::Moved => Self::Moved,
        }
    }
}

/// The engine's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleAction {
    /// No action.
    None,
    /// Split the initial window, or the present windows of the other members.
    Split,
    /// Synchronized windows and slow start after a fluctuation event.
    Synchronized,
    /// Counted the event as part of the previous one.
    Coalesced,
    /// Reduced all windows like that of a single connection.
    BackedOff,
    /// Ended slow start permanently.
    Exited,
    /// Equalized the windows in congestion avoidance.
    Equalized,
    /// Equalized the rates.
    EqualizedRates,
    /// Replaced the member's controller by the one that the others share.
    Shared,
}

impl From<DecisionAction> for BundleAction {
    fn from(action: DecisionAction) -> Self {
        match action {
            DecisionAction::None => Self::None,
            DecisionAction::Split => Self::Split,
            DecisionAction::Synchronized => Self::Synchronized,
            DecisionAction::Coalesced => Self::Coalesced,
            DecisionAction::BackedOff => Self::BackedOff,
            DecisionAction::Exited => Self::Exited,
            DecisionAction::Equalized => Self::Equalized,
            DecisionAction::EqualizedRates => Self::EqualizedRates,
            DecisionAction::Shared => Self::Shared,
        }
    }
}

/// The phase of the bundle as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundlePhase {
    /// Members that leave slow start are returned to it.
    SlowStart,
    /// Slow start has ended permanently.
    CongestionAvoidance,
}

impl From<EnginePhase> for BundlePhase {
    fn from(phase: EnginePhase) -> Self {
        match phase {
            EnginePhase::SlowStart => Self::SlowStart,
            EnginePhase::CongestionAvoidance => Self::CongestionAvoidance,
        }
    }
}

/// A decision of a bundle's engine, reported by each participating member.
///
/// Lists have an entry for each participating member, in the order in which they joined.
#[derive(Clone, Copy, Debug)]
pub struct BundleUpdated<'a> {
    /// Number of the bundle within its endpoint, or within its connection if its members are paths.
    pub bundle: u64,
    /// The path that reports the decision, if the members are paths of one connection.
    pub path: Option<PathId>,
    /// Event that the engine handled.
    pub trigger: BundleTrigger,
    /// Action taken.
    pub action: BundleAction,
    /// Phase of the bundle after the decision.
    pub phase: BundlePhase,
    /// Index in the lists of the member that caused the event.
    pub affected: Option<usize>,
    /// Index in the lists of the connection or path that reports the decision.
    pub own: usize,
    /// Growth that decides whether slow start continues (gamma i).
    pub gamma: f64,
    /// Number of fluctuation events counted so far (i).
    pub fluctuations: u64,
    /// Windows in bytes, or rates in bytes per second, before the decision and after the affected member's own
    /// reaction.
    pub before: &'a [u64],
    /// Windows or rates after the decision.
    pub after: &'a [u64],
}

impl<'a> BundleUpdated<'a> {
    /// The event for a member that received a decision; `path` if the members are paths of one connection.
    pub fn new(path: Option<PathId>, received: &'a MemberDecision) -> Self {
        let decision = &*received.decision;
        Self {
            bundle: decision.bundle,
            path,
            trigger: decision.cause.into(),
            action: decision.action.into(),
            phase: decision.phase.into(),
            affected: decision.affected,
            own: received.own,
            gamma: decision.gamma,
            fluctuations: decision.fluctuations,
            before: &decision.before,
            after: &decision.after,
        }
    }
}
