//! Settings of history.

use std::time::Duration;

use super::{Average, MAX_WINDOW_SAMPLES, PathScope};
use crate::settings::{
    Derived, Domain, Field, FieldValue, FormerName, Named, Settings, Value, Word,
};

/// The initial window of a connection whose session was resumed, with 0-RTT data or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZeroRtt {
    /// That of the peer's previous connection while that connection is open, as in the paper; otherwise
    /// that of a full handshake.
    Carry,
    /// That of a full handshake. Most returning clients resume their session, and would hardly ever benefit
    /// otherwise.
    History,
    /// The default window.
    Default,
}

impl Named for ZeroRtt {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "carry",
            about: "With the window of its peer's previous connection while that is alive",
            value: Self::Carry,
        },
        Word {
            name: "history",
            about: "Like one with a full handshake",
            value: Self::History,
        },
        Word {
            name: "default",
            about: "With the default window",
            value: Self::Default,
        },
    ];
}

/// A kind of [`Average`], without its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AverageKind {
    Mean,
    Window,
    Ewma,
}

impl Named for AverageKind {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "mean",
            about: "The mean of all samples",
            value: Self::Mean,
        },
        Word {
            name: "window",
            about: "The mean of the latest samples",
            value: Self::Window,
        },
        Word {
            name: "ewma",
            about: "A moving average that the first sample initializes",
            value: Self::Ewma,
        },
    ];

    const FORMER: &'static [FormerName] = &[FormerName::read("moving", "ewma")];
}

impl AverageKind {
    /// Default number of samples in the average of the latest ones.
    const SAMPLES: usize = 8;
    /// Default weight of the latest sample in a moving average.
    const WEIGHT: f64 = 0.125;

    const fn of(average: Average) -> Self {
        match average {
            Average::Mean => Self::Mean,
            Average::Window(_) => Self::Window,
            Average::Ewma { .. } => Self::Ewma,
        }
    }

    /// An average of this kind: `before`, if it is of this kind.
    const fn with(self, before: Average) -> Average {
        match (self, before) {
            (Self::Mean, _) => Average::Mean,
            (Self::Window, Average::Window(samples)) => Average::Window(samples),
            (Self::Window, _) => Average::Window(Self::SAMPLES),
            (Self::Ewma, Average::Ewma { weight }) => Average::Ewma { weight },
            (Self::Ewma, _) => Average::Ewma {
                weight: Self::WEIGHT,
            },
        }
    }
}

/// A kind of [`PathScope`], without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopeKind {
    Prefix,
    Address,
    Global,
}

impl Named for ScopeKind {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "prefix",
            about: "Those to peers in one network",
            value: Self::Prefix,
        },
        Word {
            name: "address",
            about: "Those to one address",
            value: Self::Address,
        },
        Word {
            name: "global",
            about: "All",
            value: Self::Global,
        },
    ];
}

impl ScopeKind {
    const fn of(scope: PathScope) -> Self {
        match scope {
            PathScope::Prefix { .. } => Self::Prefix,
            PathScope::Address => Self::Address,
            PathScope::Global => Self::Global,
        }
    }

    /// A scope of this kind: `before`, if it is of this kind.
    fn with(self, before: PathScope) -> PathScope {
        match (self, before) {
            (Self::Prefix, prefix @ PathScope::Prefix { .. }) => prefix,
            (Self::Prefix, _) => PathScope::default(),
            (Self::Address, _) => PathScope::Address,
            (Self::Global, _) => PathScope::Global,
        }
    }
}

/// The setting of a prefix length in [`HistoryConfig::SETTINGS`].
macro_rules! prefix_length {
    ($key:literal, $field:ident, $bits:literal, $about:literal) => {
        Derived {
            key: $key,
            domain: Domain::integer(1, $bits),
            about: $about,
            get: |c: &HistoryConfig| match c.scope {
                PathScope::Prefix { $field, .. } => Some($field.to_value()),
                _ => None,
            },
            set: |c: &mut HistoryConfig, value: &Value| match (&mut c.scope, u8::from_value(value))
            {
                (PathScope::Prefix { $field, .. }, Some(bits)) => {
                    *$field = bits;
                    Ok(())
                }
                _ => Err("a length of prefixes needs scope = \"prefix\"".to_owned()),
            },
        }
    };
}

/// Settings of learning from earlier connections.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryConfig {
    /// The average of connections' windows.
    pub average: Average,
    /// The scope within which connections learn from each other.
    pub scope: PathScope,
    /// Whether only connections with the same server name do.
    pub per_server_name: bool,
    /// The initial window of resumed sessions.
    pub zero_rtt: ZeroRtt,
    /// The largest initial window that an average leads to, in bytes; a larger default is not reduced.
    pub cap: Option<u64>,
    /// Whether the window of a connection that was always app-limited counts only if it is above the
    /// average: a lower one does not show that the path carries less.
    pub raise_only_when_limited: bool,
    /// Time for which a record is valid after its latest update.
    pub lifetime: Duration,
}

impl HistoryConfig {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Derived {
            key: "average",
            domain: Domain::words::<AverageKind>(),
            about: "How the windows of earlier connections are averaged",
            get: |c: &Self| Some(AverageKind::of(c.average).to_value()),
            set: |c: &mut Self, value: &Value| {
                if let Some(kind) = AverageKind::from_value(value) {
                    c.average = kind.with(c.average);
                }
                Ok(())
            },
        },
        &Derived {
            key: "window",
            domain: Domain::integer(1, MAX_WINDOW_SAMPLES as u64),
            about: "Samples that count, for average = \"window\"",
            get: |c: &Self| match c.average {
                Average::Window(samples) => Some(samples.to_value()),
                _ => None,
            },
            set: |c: &mut Self, value: &Value| match (&mut c.average, usize::from_value(value)) {
                (Average::Window(samples), Some(new)) => {
                    *samples = new;
                    Ok(())
                }
                _ => Err("window needs average = \"window\"".to_owned()),
            },
        },
        &Derived {
            key: "weight",
            domain: Domain::WEIGHT,
            about: "The weight of a new sample, for average = \"ewma\"",
            get: |c: &Self| match c.average {
                Average::Ewma { weight } => Some(weight.to_value()),
                _ => None,
            },
            set: |c: &mut Self, value: &Value| match (&mut c.average, f64::from_value(value)) {
                (Average::Ewma { weight }, Some(new)) => {
                    *weight = new;
                    Ok(())
                }
                _ => Err("weight needs average = \"ewma\"".to_owned()),
            },
        },
        &Derived {
            key: "scope",
            domain: Domain::words::<ScopeKind>(),
            about: "Which connections learn from each other",
            get: |c: &Self| Some(ScopeKind::of(c.scope).to_value()),
            set: |c: &mut Self, value: &Value| {
                if let Some(kind) = ScopeKind::from_value(value) {
                    c.scope = kind.with(c.scope);
                }
                Ok(())
            },
        },
        &prefix_length!(
            "v4_prefix",
            v4,
            32,
            "Bits of an IPv4 address that name a network, for scope = \"prefix\""
        ),
        &prefix_length!(
            "v6_prefix",
            v6,
            128,
            "Bits of an IPv6 address that name a network, for scope = \"prefix\""
        ),
        &Field::new(
            "per_server_name",
            Domain::SWITCH,
            "Whether only connections that ask for the same server learn from each other",
            |c: &mut Self| &mut c.per_server_name,
        ),
        &Field::new(
            "zero_rtt",
            Domain::words::<ZeroRtt>(),
            "How resumed sessions begin",
            |c: &mut Self| &mut c.zero_rtt,
        ),
        &Field::new(
            "cap",
            Domain::bytes(1, 1 << 32).or("none"),
            "The largest initial window that an average can give",
            |c: &mut Self| &mut c.cap,
        ),
        &Field::new(
            "raise_only_when_limited",
            Domain::SWITCH,
            "Whether the window of an app-limited connection counts only if it is above the average",
            |c: &mut Self| &mut c.raise_only_when_limited,
        ),
        &Derived {
            key: "lifetime",
            domain: Domain::LIFETIME,
            about: "How long a record is used",
            get: |c: &Self| {
                Some(
                    (c.lifetime != Duration::MAX)
                        .then_some(c.lifetime)
                        .to_value(),
                )
            },
            set: |c: &mut Self, value: &Value| {
                c.lifetime = Duration::from_value(value).unwrap_or(Duration::MAX);
                Ok(())
            },
        },
    ];

    /// The algorithm as published. The paper does not specify `scope` and `lifetime`: here one address,
    /// without a limit.
    pub fn published() -> Self {
        Self {
            average: Average::Mean,
            scope: PathScope::Address,
            per_server_name: false,
            zero_rtt: ZeroRtt::Carry,
            cap: None,
            raise_only_when_limited: false,
            lifetime: Duration::MAX,
        }
    }
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self {
            average: Average::Ewma { weight: 0.125 },
            scope: PathScope::default(),
            per_server_name: true,
            zero_rtt: ZeroRtt::History,
            // 200 datagrams of the minimum size of QUIC.
            cap: Some(200 * 1200),
            raise_only_when_limited: true,
            lifetime: Duration::from_secs(3600),
        }
    }
}
