//! Stream schedulers, which select the stream for the next packet.

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
pub use wrr::{FirstTurn, Rounding, Tokens, Wrr, WrrConfig};

use crate::settings::{Added, Make, Registry, Spec};

/// Stream schedulers by name.
pub const SCHEDULERS: Registry<Make<dyn StreamScheduler>> = Registry::new(
    "stream scheduler",
    &[
        &fifo::ENTRY,
        &rfc9218::ENTRY,
        &wrr::WEIGHTED,
        &wrr::SCATTERED,
    ],
)
.open_to(added);

/// The schedulers that the program adds.
fn added() -> &'static Added<Make<dyn StreamScheduler>> {
    static ADDED: Added<Make<dyn StreamScheduler>> = Added::new();
    &ADDED
}

/// The mode of sharing send opportunities among active streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One after another, at least approximately.
    #[default]
    InOrder,
    /// Concurrently, in proportion to their weights.
    Weighted,
}

/// Selects among the streams that have data to send.
///
/// Calls are made once or more per packet. They do not search lists of streams, and they do not allocate
/// if as many streams have been active before.
pub trait StreamScheduler: Send + Debug {
    /// Called when `id` has data to send. If it is active already, only its priority is updated.
    fn activate(&mut self, id: StreamId, priority: Priority);

    /// Called when `id` has no data to send for now. No effect if it is not active.
    fn deactivate(&mut self, id: StreamId);

    /// Called when `id` has sent all of its data at least once. Streams that depend on it need no longer wait.
    fn finish(&mut self, id: StreamId) {
        self.deactivate(id);
    }

    /// Changes the priority of `id`, if it is active. The dependency stays that of its first activation.
    fn set_priority(&mut self, id: StreamId, priority: Priority);

    /// The stream that gets the next opportunity. The result stays the same until another call changes
    /// something. `None` if no stream is active, or if all active ones depend on streams that are not.
    fn pick(&mut self) -> Option<StreamId>;

    /// Appends to `out` up to `most` active streams, each once, in the order in which they would be picked
    /// if those before were not active. Changes nothing. A scheduler without an order appends the stream
    /// that it picks.
    fn order(&mut self, most: usize, out: &mut Vec<StreamId>) {
        out.extend(self.pick().filter(|_| most > 0));
    }

    /// Records that `id` used one opportunity for `bytes` bytes.
    fn on_sent(&mut self, id: StreamId, bytes: u64);

    /// The mode of sharing send opportunities among active streams.
    fn sharing(&self) -> Sharing {
        Sharing::InOrder
    }

    /// Short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// The scheduler's notation in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

#[cfg(test)]
mod tests;
