//! Weighted round robin over a tree of streams: the stream manager of HBES (Xing et al., 2022, section
//! III-B).

mod tokens;
mod tree;

use marline_wire::StreamId;

use super::{Priority, Sharing, StreamScheduler};
pub use tokens::{Rounding, Tokens};
use tree::Tree;

/// The configuration of a [`Wrr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrrConfig {
    /// How many opportunities a stream gets in a round.
    pub tokens: Tokens,
    /// Whether streams wait until the stream that they depend on is finished, as in the paper's text. Otherwise
    /// they send whenever that stream has nothing to send, as in RFC 7540, section 5.3.1 and the paper's
    /// algorithm.
    pub strict_parent: bool,
    /// When a stream that becomes active during a round gets its first turn.
    pub first_turn: FirstTurn,
}

/// When a stream that becomes active during a round of its siblings gets its first turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstTurn {
    /// In the next round, as published.
    #[default]
    Wait,
    /// In this round, after the siblings that are active already.
    Immediate,
}

impl WrrConfig {
    /// Weights without scaling: the weight of a stream is its number of opportunities in a round.
    pub const WRR: Self = Self {
        tokens: Tokens::Weight,
        strict_parent: true,
        first_turn: FirstTurn::Wait,
    };

    /// Scattered: the heaviest sibling has 10 opportunities in a round, so that rounds are short and every stream
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
/// takes its turns, as long as the tree remembers that stream.
///
/// A pick takes O(depth) time and a new round O(siblings); the tree is at most 32 deep, and remembers at
/// most 256 streams that have nothing to send and on which no other depends.
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
            Tokens::Weight => "wrr",
            Tokens::Scattered { .. } => "scattered_wrr",
        }
    }
}

#[cfg(test)]
mod tests;
