//! Which stream gets the next packet's opportunity.

pub mod conformance;
mod fifo;
mod rfc9218;
mod ring;
mod wrr;

use std::fmt::Debug;

use marline_wire::StreamId;

pub use crate::priority::{Dependency, InvalidPriority, Priority};
pub use fifo::Fifo;
pub use rfc9218::Rfc9218;
pub use wrr::{Newcomer, Rounding, Tokens, Wrr, WrrConfig};

/// How streams that have something to send share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One after another, in their order, or nearly so.
    #[default]
    InOrder,
    /// All at once, in proportion to their weights.
    Weighted,
}

/// Chooses among the streams that have something to send.
///
/// Calls come once or more per packet: they search no list of streams, and do not allocate once as
/// many streams have been active before.
pub trait StreamScheduler: Send + Debug {
    /// `id` has something to send. Nothing happens if it is active already, but its priority is
    /// updated.
    fn activate(&mut self, id: StreamId, priority: Priority);

    /// `id` has nothing to send for now. Nothing happens if it is not active.
    fn deactivate(&mut self, id: StreamId);

    /// `id` has sent all that it ever will, unless some of it is lost. Streams that depend on it need wait
    /// no longer.
    fn finish(&mut self, id: StreamId) {
        self.deactivate(id);
    }

    /// Changes the priority of `id`, if it is active. What a stream depends on stays as it was when the
    /// stream was first active.
    fn set_priority(&mut self, id: StreamId, priority: Priority);

    /// Who gets the next opportunity. Asking does not spend it: the answer stays the same until
    /// another call changes something. `None` if no stream is active, or if all that are wait for others
    /// that are not.
    fn pick(&mut self) -> Option<StreamId>;

    /// Appends to `out` up to `most` active streams, each once, in the order in which they would be picked
    /// if every one before were passed over. Asking spends nothing. A scheduler that cannot say more names
    /// the one it picks.
    fn order(&mut self, most: usize, out: &mut Vec<StreamId>) {
        out.extend(self.pick().filter(|_| most > 0));
    }

    /// `id` used one opportunity for `bytes` bytes.
    fn on_sent(&mut self, id: StreamId, bytes: u64);

    /// How those that are active share what is sent.
    fn sharing(&self) -> Sharing {
        Sharing::InOrder
    }

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;
}

#[cfg(test)]
mod tests;
