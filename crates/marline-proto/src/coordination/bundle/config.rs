//! The configuration of bundles.

use std::fmt;

use super::MAX_MEMBERS;
use crate::settings::{Base, Domain, Field, Named, Settings, Word};

/// Names a bundle: 16 random bytes of its client's choice.
///
/// They are sent in the client's first packet, which any observer on the path can read (RFC 9001, section
/// 5.2); off-path attackers cannot guess them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MembershipId(pub [u8; 16]);

impl fmt::Debug for MembershipId {
    /// Shows the first two bytes only: whoever knows the identifier can join from the client's address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}{:02x}..", self.0[0], self.0[1])
    }
}

/// The bundle that a client's connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The bundle; the same for all its connections and hard to guess.
    pub id: MembershipId,
    /// How many connections the client is going to open, at least 1: they share one initial window.
    pub connections: u64,
}

/// Which members take part in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleScope {
    /// All that are connected, as in the paper.
    All,
    /// Those that have data in flight, are not app-limited, and receive acknowledgments: an idle or stalled
    /// member cannot use a part of the windows, which the others would lose.
    Active,
}

impl Named for BundleScope {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "all",
            about: "All that are connected",
            value: Self::All,
        },
        Word {
            name: "active",
            about: "Those that send and get acknowledgments",
            value: Self::Active,
        },
    ];
}

/// Which fluctuation events count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coalesce {
    /// None: each counts.
    Never,
    /// Those of one member within its smoothed round-trip time.
    Member,
    /// Those of all members within the largest smoothed round-trip time: one update of the growth in a round, as in
    /// section IV-A.
    Bundle,
}

impl Named for Coalesce {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "never",
            about: "None: each counts",
            value: Self::Never,
        },
        Word {
            name: "member",
            about: "Those of one member within its smoothed round-trip time",
            value: Self::Member,
        },
        Word {
            name: "bundle",
            about: "Those of all members within the largest smoothed round-trip time",
            value: Self::Bundle,
        },
    ];
}

/// The share that rate-based members take together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateBasedShare {
    /// The share of one connection: they share one controller.
    One,
    /// The share of as many connections, as in the paper: each has a controller of its own, and their rates are made equal.
    Each,
}

impl Named for RateBasedShare {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "one",
            about: "That of one connection: they share one controller",
            value: Self::One,
        },
        Word {
            name: "each",
            about: "That of as many connections: rates are made equal",
            value: Self::Each,
        },
    ];
}

/// The range of factors of growth and of tolerated inequality.
const RATIO: Domain = Domain::number(1.0, 100.0);

/// Members of a bundle.
const MEMBERS: Domain = Domain::integer(1, MAX_MEMBERS as u64);

/// How a bundle is coordinated.
#[derive(Clone, Debug, PartialEq)]
pub struct BundleConfig {
    /// Whether members share one initial window (section IV-A).
    pub split_initial_window: bool,
    /// Whether windows are synchronized.
    pub sync_windows: bool,
    /// Whether slow start is synchronized: a member that left it because of a fluctuation event is put back,
    /// until all leave together. Without it, each member leaves on its own. If windows are not
    /// synchronized either, the engine decides nothing.
    pub sync_state: bool,
    /// The part of the window that a fluctuation event leaves (beta); `None` measures it on the running
    /// controllers.
    pub backoff: Option<f64>,
    /// Growth of the window in a round of slow start (gamma 0); `None` measures it on the running
    /// controllers.
    pub slow_start_growth: Option<f64>,
    /// Growth of the bundle below which slow start ends permanently (delta).
    pub avoidance_growth: f64,
    /// Growth of the affected member in the round of its event. 1 reproduces the paper's figure 7; with
    /// delta, as the paper's text has it, slow start never ends.
    pub affected_growth: f64,
    /// Ratio of the largest window to the smallest above which all are made equal in congestion avoidance.
    pub imbalance: f64,
    /// Ratio of the largest rate to the smallest above which all are made equal; for controllers that work
    /// with a rate.
    pub rate_imbalance: f64,
    /// Whether a member whose slow start ended because its round-trip time rose backs off as after a loss.
    pub backoff_on_delay: bool,
    /// Who takes part.
    pub scope: BundleScope,
    /// Which events count as one.
    pub coalesce: Coalesce,
    /// Slow start ends for all members, with the windows as they are, once the round-trip times of this many
    /// members (or of all that take part) have risen within the largest smoothed round-trip time: if
    /// several rise, there is a queue; if one does, it may be jitter. `None` is never, as in the paper.
    /// Applies only where slow start is synchronized.
    pub corroborated_by: Option<usize>,
    /// No window is made smaller than this many full datagrams.
    pub floor_packets: u64,
    /// Whether all members together take no more than one connection would. Those that work with a window back off
    /// together, and their windows grow by one datagram per round in total; those that work with a rate share one
    /// controller, whatever [`rate_based_share`](Self::rate_based_share) is.
    pub fair: bool,
    /// The share of members whose controllers work with a rate. With [`One`](RateBasedShare::One) no other key but
    /// [`match_addresses`](Self::match_addresses) has an effect on them. Paths of one connection are always
    /// [`Each`](RateBasedShare::Each).
    pub rate_based_share: RateBasedShare,
    /// How many members share one initial window if the client does not announce a number.
    pub connections: u64,
    /// Server: whether connections without an identifier form a bundle if they come from one address and name
    /// the same server. All clients behind one address translator are then coordinated together.
    pub match_addresses: bool,
}

impl BundleConfig {
    /// The presets from which settings can start.
    pub const BASES: &'static [Base<Self>] = &[
        Base {
            name: "default",
            make: Self::default,
        },
        Base {
            name: "published",
            make: Self::published,
        },
        Base {
            name: "published-every-event",
            make: Self::published_every_event,
        },
    ];

    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "split_initial_window",
            Domain::SWITCH,
            "Whether members share one initial window",
            |c: &mut Self| &mut c.split_initial_window,
        ),
        &Field::new(
            "sync_windows",
            Domain::SWITCH,
            "Whether windows are synchronized",
            |c: &mut Self| &mut c.sync_windows,
        ),
        &Field::new(
            "sync_state",
            Domain::SWITCH,
            "Whether members leave slow start together",
            |c: &mut Self| &mut c.sync_state,
        ),
        &Field::new(
            "backoff",
            Domain::PART.or("measured"),
            "The part of the window that a fluctuation event leaves (beta)",
            |c: &mut Self| &mut c.backoff,
        ),
        &Field::new(
            "slow_start_growth",
            RATIO.or("measured"),
            "Growth of the window in a round of slow start (gamma 0)",
            |c: &mut Self| &mut c.slow_start_growth,
        ),
        &Field::new(
            "avoidance_growth",
            RATIO,
            "Growth of the bundle in a round below which it leaves slow start and does not return (delta)",
            |c: &mut Self| &mut c.avoidance_growth,
        ),
        &Field::new(
            "affected_growth",
            RATIO,
            "Growth of the affected member in the round of its event",
            |c: &mut Self| &mut c.affected_growth,
        ),
        &Field::new(
            "imbalance",
            RATIO,
            "Ratio of the largest to the smallest window above which all become equal",
            |c: &mut Self| &mut c.imbalance,
        ),
        &Field::new(
            "rate_imbalance",
            RATIO,
            "Ratio of the largest to the smallest rate above which all become equal, for controllers that have a rate",
            |c: &mut Self| &mut c.rate_imbalance,
        ),
        &Field::new(
            "backoff_on_delay",
            Domain::SWITCH,
            "Whether a member whose round-trip time rose backs off as after a loss",
            |c: &mut Self| &mut c.backoff_on_delay,
        ),
        &Field::new(
            "scope",
            Domain::words::<BundleScope>(),
            "Which members take part in a decision",
            |c: &mut Self| &mut c.scope,
        ),
        &Field::new(
            "coalesce",
            Domain::words::<Coalesce>(),
            "Fluctuation events that count as one",
            |c: &mut Self| &mut c.coalesce,
        ),
        &Field::new(
            "corroborated_by",
            MEMBERS.or("never"),
            "Members whose round-trip times must have risen for all to leave slow start",
            |c: &mut Self| &mut c.corroborated_by,
        ),
        &Field::new(
            "floor_packets",
            Domain::integer(1, 1000),
            "No window is made smaller than this many full datagrams",
            |c: &mut Self| &mut c.floor_packets,
        ),
        &Field::new(
            "fair",
            Domain::SWITCH,
            "Whether all members together take no more than one connection would",
            |c: &mut Self| &mut c.fair,
        ),
        &Field::new(
            "rate_based_share",
            Domain::words::<RateBasedShare>(),
            "The share of a link that connections with rate-based controllers take together",
            |c: &mut Self| &mut c.rate_based_share,
        ),
        &Field::new(
            "connections",
            MEMBERS,
            "Members that share one initial window where the client does not say how many there will be",
            |c: &mut Self| &mut c.connections,
        ),
        &Field::new(
            "match_addresses",
            Domain::SWITCH,
            "Whether connections without an identifier belong together by address and server name",
            |c: &mut Self| &mut c.match_addresses,
        ),
    ];

    /// Whether rate-based members share one controller.
    pub fn shares_controller(&self) -> bool {
        self.fair || self.rate_based_share == RateBasedShare::One
    }

    /// The engine as published: growth is updated once in a round (section IV-A), with the growth of the affected member
    /// that reproduces figure 7.
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
            scope: BundleScope::All,
            coalesce: Coalesce::Bundle,
            corroborated_by: None,
            floor_packets: 2,
            fair: false,
            rate_based_share: RateBasedShare::Each,
            connections: 3,
            match_addresses: false,
        }
    }

    /// [`published`](Self::published), except that each event updates the growth, also several of one round, as the list
    /// of steps in section IV-B can be read.
    pub fn published_every_event() -> Self {
        Self {
            coalesce: Coalesce::Never,
            ..Self::published()
        }
    }
}

impl Default for BundleConfig {
    fn default() -> Self {
        Self {
            backoff: None,
            slow_start_growth: None,
            backoff_on_delay: false,
            scope: BundleScope::Active,
            corroborated_by: Some(2),
            rate_based_share: RateBasedShare::One,
            ..Self::published()
        }
    }
}
