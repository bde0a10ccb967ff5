//! What the engine of a bundle does (marline's own).

/// What the engine was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleTrigger {
    /// A member joined.
    Joined,
    /// A loss event of a member.
    Loss,
    /// A member's round-trip time rose, which ended its slow start.
    SlowStartExit,
    /// A round of all members is over.
    Round,
    /// A member goes another way now.
    Moved,
}

/// What the engine did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleAction {
    /// Nothing.
    None,
    /// Shared the initial window out, or what the others have by now.
    Split,
    /// Synchronized windows and slow start after a fluctuation event.
    Synchronized,
    /// Took the event as part of the one before.
    Coalesced,
    /// Backed off for all as one connection would.
    BackedOff,
    /// Gave slow start up for good.
    Exited,
    /// Made the windows equal in congestion avoidance.
    Equalized,
    /// Made the rates equal.
    EqualizedRates,
}

/// Where the bundle as a whole stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundlePhase {
    /// Members that drop out of slow start are put back.
    SlowStart,
    /// For good.
    CongestionAvoidance,
}

/// The engine of a bundle decided something; every member that took part is told.
///
/// Lists have an entry for each member that took part, in the order in which they joined.
#[derive(Clone, Copy, Debug)]
pub struct BundleUpdated<'a> {
    /// Number of the bundle within its endpoint, or within its connection if its members are paths.
    pub bundle: u64,
    /// The path that tells this, if the members are paths of one connection.
    pub path: Option<u32>,
    /// Why.
    pub trigger: BundleTrigger,
    /// What was done.
    pub action: BundleAction,
    /// Afterwards.
    pub phase: BundlePhase,
    /// Place in the lists of the member that the event happened to.
    pub affected: Option<usize>,
    /// Place in the lists of the connection, or path, that tells this.
    pub own: usize,
    /// Growth of the bundle by which it judges whether slow start still pays (gamma i).
    pub gamma: f64,
    /// Fluctuation events that counted so far (i).
    pub fluctuations: u64,
    /// Windows in bytes, or rates in bytes per second, before: after the affected member's own reaction.
    pub before: &'a [u64],
    /// And after.
    pub after: &'a [u64],
}
