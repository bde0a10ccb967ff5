//! Observation of a connection: typed events, statistics, and qlog.
//!
//! Events are borrowed values: an observer that ignores an event costs one virtual call, and payloads are
//! decoded only by observers that read them. Observation does not influence the connection: other modules
//! have their own enums, which are converted to events.

pub mod events;
mod json;
pub mod qlog;
pub mod stats;

pub use events::Event;
pub use qlog::QlogWriter;
pub use stats::{ConnectionStats, PathStage, PathStats};

use crate::Instant;

/// Receives the events of one connection.
///
/// Called by the thread that drives the connection, which must not be blocked.
pub trait Observer: Send {
    /// Called when `event` happened at `now`. Times do not decrease.
    fn on_event(&mut self, now: Instant, event: &Event<'_>);
}
