//! Weighted round robin over a tree of streams: the stream manager of HBES (Xing et al., 2022, section
//! III-B).

mod tokens;
mod tree;

use std::sync::Arc;

use marline_wire::StreamId;

use super::{Priority, Sharing, StreamScheduler};
use crate::settings::{
    Derived, Domain, Entry, Field, FieldValue, Make, Named, Settings, Spec, Value, Word,
};
pub use tokens::{Rounding, Tokens};
use tree::Tree;

/// Name and parameters in settings. A stream need not wait for its parent to finish, as in the paper's
/// algorithm and RFC 7540, section 5.3.1.
pub(super) const WEIGHTED: Entry<Make<dyn StreamScheduler>, WrrConfig> = Entry {
    name: "wrr",
    about: "Weighted round robin: the weight of a stream is its number of packets per turn",
    parameters: &[&STRICT_PARENT, &FIRST_TURN],
    default: || WrrConfig {
        strict_parent: false,
        ..WrrConfig::WRR
    },
    make: |config| Arc::new(move || Box::new(Wrr::new(config))),
};

/// Name and parameters in settings of the scattered variant.
pub(super) const SCATTERED: Entry<Make<dyn StreamScheduler>, WrrConfig> = Entry {
    name: "scattered_wrr",
    about: "Weighted round robin in short turns: of 10 packets for the heaviest, in proportion for others",
    parameters: WrrConfig::SETTINGS,
    default: || WrrConfig {
        strict_parent: false,
        ..WrrConfig::SCATTERED
    },
    make: |config| Arc::new(move || Box::new(Wrr::new(config))),
};

const STRICT_PARENT: Field<WrrConfig, bool> = Field::new(
    "strict_parent",
    Domain::SWITCH,
    "Whether a stream waits until its parent is finished",
    |c| &mut c.strict_parent,
);

const FIRST_TURN: Field<WrrConfig, FirstTurn> = Field::new(
    "newcomer",
    Domain::words::<FirstTurn>(),
    "First turn of a stream that becomes active during a round",
    |c| &mut c.first_turn,
);

/// The configuration of a [`Wrr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrrConfig {
    /// Number of opportunities of a stream per round.
    pub tokens: Tokens,
    /// Whether streams wait until their parent is finished, as in the paper's text. Otherwise they send
    /// whenever the parent has nothing to send, as in RFC 7540, section 5.3.1 and the paper's algorithm.
    pub strict_parent: bool,
    /// First turn of a stream that becomes active during a round.
    pub first_turn: FirstTurn,
}

/// The first turn of a stream that becomes active during a round of its siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstTurn {
    /// In the next round, as published.
    #[default]
    Wait,
    /// In this round, after the active siblings.
    Immediate,
}

impl Named for FirstTurn {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "wait",
            about: "In the next round",
            value: Self::Wait,
        },
        Word {
            name: "immediate",
            about: "In this round, after the active siblings",
            value: Self::Immediate,
        },
    ];
}

impl WrrConfig {
    /// The parameters in settings of the scattered variant.
    pub const SETTINGS: Settings<Self> = &[
        &Derived {
            key: "most",
            domain: Domain::integer(1, 256),
            about: "Packets per turn of the heaviest stream",
            get: |c: &Self| match c.tokens {
                Tokens::Weight => None,
                Tokens::Scattered { most, .. } => Some(Value::Integer(most.into())),
            },
            set: |c: &mut Self, value: &Value| {
                if let (Tokens::Scattered { most, .. }, Value::Integer(packets)) =
                    (&mut c.tokens, value)
                {
                    *most = u16::try_from(*packets).unwrap_or(u16::MAX);
                }
                Ok(())
            },
        },
        &Derived {
            key: "rounding",
            domain: Domain::words::<Rounding>(),
            about: "Rounding of a turn to whole packets",
            get: |c: &Self| match c.tokens {
                Tokens::Weight => None,
                Tokens::Scattered { rounding, .. } => Some(rounding.to_value()),
            },
            set: |c: &mut Self, value: &Value| {
                if let (Tokens::Scattered { rounding, .. }, Some(new)) =
                    (&mut c.tokens, Rounding::from_value(value))
                {
                    *rounding = new;
                }
                Ok(())
            },
        },
        &STRICT_PARENT,
        &FIRST_TURN,
    ];

    /// Weights without scaling: the weight of a stream is its number of opportunities in a round.
    pub const WRR: Self = Self {
        tokens: Tokens::Weight,
        strict_parent: true,
        first_turn: FirstTurn::Wait,
    };

    /// Scattered: the heaviest sibling has 10 opportunities per round, so that rounds are short and every stream
    /// is served soon.
    pub const SCATTERED: Self = Self {
        tokens: Tokens::SCATTERED,
        ..Self::WRR
    };
}

/// Weighted round robin, scattered or not.
///
/// Streams form a tree by their dependencies ([`Priority::dependency`](crate::Priority)). Siblings take
/// turns in the order in which they were first active; a turn lasts for as many packets as the stream has
/// tokens. When no sibling that can send has a token left, all that can send get new ones. A stream that has
/// nothing to send passes its turns on to the streams that depend on it, if they may send.
///
/// A round ends when all streams that can send have used their tokens: a blocked stream with tokens left does
/// not delay the others. A stream that becomes active after the stream that it depends on was finished still
/// takes its turns, as long as the tree contains that stream.
///
/// A pick takes O(depth) time and a new round O(siblings); the tree is at most 32 deep, and keeps at
/// most 256 streams that have nothing to send and no dependents.
#[derive(Debug)]
pub struct Wrr {
    config: WrrConfig,
    tree: Tree,
}

impl Wrr {
    /// A scheduler without streams.
    pub fn new(config: WrrConfig) -> Self {
        Self {
            config,
            tree: Tree::new(config),
        }
    }

    /// [`WrrConfig::WRR`].
    pub fn weighted() -> Self {
        Self::new(WrrConfig::WRR)
    }

    /// [`WrrConfig::SCATTERED`].
    pub fn scattered() -> Self {
        Self::new(WrrConfig::SCATTERED)
    }
}

impl StreamScheduler for Wrr {
    fn activate(&mut self, id: StreamId, priority: Priority) {
        self.tree.activate(id, priority);
    }

    fn deactivate(&mut self, id: StreamId) {
        self.tree.pause(id);
    }

    fn finish(&mut self, id: StreamId) {
        self.tree.finish(id);
    }

    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.tree.set_weight(id, priority.weight());
    }

    fn pick(&mut self) -> Option<StreamId> {
        self.tree.pick()
    }

    fn order(&mut self, most: usize, out: &mut Vec<StreamId>) {
        let most = most.saturating_add(out.len());
        self.tree.order(most, out);
    }

    fn on_sent(&mut self, id: StreamId, _bytes: u64) {
        self.tree.spend(id);
    }

    fn sharing(&self) -> Sharing {
        Sharing::Weighted
    }

    fn name(&self) -> &'static str {
        match self.config.tokens {
            Tokens::Weight => WEIGHTED.name,
            Tokens::Scattered { .. } => SCATTERED.name,
        }
    }

    fn spec(&self) -> Spec {
        match self.config.tokens {
            Tokens::Weight => WEIGHTED.spec(&self.config),
            Tokens::Scattered { .. } => SCATTERED.spec(&self.config),
        }
    }
}

#[cfg(test)]
mod tests;
