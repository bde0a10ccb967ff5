//! Which stream gets the next packet's opportunity.

pub mod conformance;
mod fifo;
mod rfc9218;
mod ring;

use std::fmt::Debug;

use marline_wire::StreamId;

pub use crate::priority::{InvalidPriority, Priority};
pub use fifo::Fifo;
pub use rfc9218::Rfc9218;

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

    /// Changes the priority of `id`, if it is active.
    fn set_priority(&mut self, id: StreamId, priority: Priority);

    /// Who gets the next opportunity. Asking does not spend it: the answer stays the same until
    /// another call changes something.
    fn pick(&mut self) -> Option<StreamId>;

    /// `id` used one opportunity for `bytes` bytes.
    fn on_sent(&mut self, id: StreamId, bytes: u64);

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;
}

#[cfg(test)]
mod tests;
