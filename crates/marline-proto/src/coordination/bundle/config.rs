//! What can be chosen about a bundle.

use std::fmt;

/// Names a bundle: 16 random bytes of its client's choice.
///
/// They travel in the client's first packet, which anybody on the way can read (RFC 9001, section 5.2);
/// whoever does not see the client's packets cannot guess them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MembershipId(pub [u8; 16]);

impl fmt::Debug for MembershipId {
    /// Who knows the whole identifier can join from the client's address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}{:02x}..", self.0[0], self.0[1])
    }
}

/// The bundle that a client's connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The bundle; the same for all its connections and hard to guess.
    pub id: MembershipId,
    /// How many connections the client means to open, at least 1: they share one initial window.
    pub connections: u64,
}

/// Which members take part in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All that are connected, as the paper has it.
    All,
    /// Those that have data in flight, are not short of data to send and get acknowledgments: what idle
    /// or stalled members are given is lost to the others.
    Active,
}

/// Fluctuation events that count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coalesce {
    /// None: each counts, as the paper has it.
    Never,
    /// Those of one member within its smoothed round-trip time.
    Member,
    /// Those of all members within the largest smoothed round-trip time.
    Bundle,
}

/// How a bundle is coordinated.
#[derive(Clone, Debug, PartialEq)]
pub struct BundleConfig {
    /// Whether members share one initial window (section IV-A).
    pub split_initial_window: bool,
    /// Whether windows are synchronized.
    pub sync_windows: bool,
    /// Whether a member that a fluctuation event threw out of slow start is put back into it, until all
    /// leave it together. Without it each leaves on its own, and nobody is made to; without windows
    /// either, nothing is decided.
    pub sync_state: bool,
    /// The part of the window that a fluctuation event leaves (beta); `None` is what is measured of the
    /// running controller.
    pub backoff: Option<f64>,
    /// Growth of the window in a round of slow start (gamma 0); `None` is what is measured of the running
    /// controller.
    pub slow_start_growth: Option<f64>,
    /// Growth of the bundle below which slow start is given up for good (delta).
    pub avoidance_growth: f64,
    /// Growth of the affected member in the round of its event: 1 reproduces the paper's figure 7; its
    /// text says delta, with which slow start never ends.
    pub affected_growth: f64,
    /// Largest window over smallest in congestion avoidance above which all become equal.
    pub imbalance: f64,
    /// Largest rate over smallest above which all become equal; for controllers that have a rate.
    pub rate_imbalance: f64,
    /// Whether a member that left slow start because its round-trip time rose backs off as after a loss.
    pub backoff_on_delay: bool,
    /// Who takes part.
    pub scope: Scope,
    /// Which events count as one.
    pub coalesce: Coalesce,
    /// Slow start is given up for all, windows as they are, as soon as the round-trip times of so many
    /// members, or of all that take part, have risen within the largest smoothed round-trip time: what
    /// several see is a queue, what a single one sees may be jitter. `None` is never, as the paper has
    /// it. Only where slow start is synchronized.
    pub corroborated_by: Option<usize>,
    /// No window is made smaller than this many full datagrams.
    pub floor_packets: u64,
    /// Whether all members together take no more than one connection would: they back off together, and
    /// grow by one datagram a round together. For controllers with a window only.
    pub fair: bool,
    /// Members that share one initial window where the client does not say how many there will be.
    pub connections: u64,
    /// Server: whether connections without an identifier belong together if they come from one address and
    /// ask for one server name. Clients behind one address translator then share fates.
    pub match_addresses: bool,
}

impl BundleConfig {
    /// The engine as published, with the growth of the affected member that reproduces its figure 7.
    pub fn published() -> Self {
        Self {
            split_initial_window: true,
            sync_windows: true,
            sync_state: true,
            backoff: Some(0.7),
            slow_start_growth: Some(1.5),
            avoidance_growth: 1.05,
            affected_growth: 1.0,
            imbalance: 1.5,
            rate_imbalance: 2.0,
            backoff_on_delay: true,
            scope: Scope::All,
            coalesce: Coalesce::Never,
            corroborated_by: None,
            floor_packets: 2,
            fair: false,
            connections: 3,
            match_addresses: false,
        }
    }
}

impl Default for BundleConfig {
    fn default() -> Self {
        Self {
            backoff: None,
            slow_start_growth: None,
            backoff_on_delay: false,
            scope: Scope::Active,
            coalesce: Coalesce::Bundle,
            corroborated_by: Some(2),
            ..Self::published()
        }
    }
}
