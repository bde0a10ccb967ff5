//! Weighted round robin over a tree of streams: the stream manager of HBES (Xing et al., 2022, section
//! III-B).

mod tokens;
mod tree;

use marline_wire::StreamId;

use super::{Priority, Sharing, StreamScheduler};
pub use tokens::{Rounding, Tokens};
use tree::Tree;

/// How a [`Wrr`] shares opportunities out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrrConfig {
    /// How many opportunities a stream has in a round.
    pub tokens: Tokens,
    /// Whether streams wait until what they depend on is finished, as the paper's text has it. Otherwise
    /// they send whenever what they depend on has nothing to send, as in RFC 7540, section 5.3.1 and the
    /// paper's algorithm.
    pub strict_parent: bool,
    /// What becomes of a stream that comes in the midst of a round.
    pub newcomer: Newcomer,
}

/// What becomes of a stream that comes in the midst of a round of its siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Newcomer {
    /// It waits for the next round, as published.
    #[default]
    Wait,
    /// It gets its tokens for this round, and its turn after those that are there.
    Immediate,
}

impl WrrConfig {
    /// Weights as they are: a stream has as many opportunities in a round as it weighs.
    pub const WRR: Self = Self {
        tokens: Tokens::Weight,
        strict_parent: true,
        newcomer: Newcomer::Wait,
    };

    /// Scattered: the heaviest sibling has 10 opportunities in a round, so that rounds are short and
    /// everybody is soon served.
    pub const SCATTERED: Self = Self {
        tokens: Tokens::SCATTERED,
        ..Self::WRR
    };
}

/// Weighted round robin, scattered or not.
///
/// Streams form a tree by what they depend on ([`Priority::dependency`](crate::Priority)). Siblings take
/// turns in the order in which they were first active; a turn lasts for as many packets as the stream has
/// tokens, and when no sibling that could send has one left, all that could get new ones. A stream that has
/// nothing to send passes its turns on to those that depend on it, if they may send.
///
/// Only streams that could send count when a round ends: one that is blocked with tokens left does not
/// hold the others up. A stream that is first active after what it depends on was finished still takes its
/// turns, while the tree remembers that.
///
/// A pick takes O(depth) time and a new round O(siblings); the tree is at most 32 deep, and remembers at
/// most 256 streams that have nothing to send and that no other depends on.
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
