//! What a connection lets be seen: typed events as they happen, statistics at any time, and qlog.
//!
//! Events are borrowed values: an observer that wants nothing costs one virtual call, and payloads
//! are decoded only by those who look into them. Nothing here steers the connection.

pub mod events;
mod json;
pub mod qlog;
pub mod stats;

pub use events::Event;
pub use qlog::QlogWriter;
pub use stats::{ConnectionStats, PathStage, PathStats};

use crate::Instant;

/// Listens to one connection.
///
/// Called on the connection's own thread between two steps of the protocol: be quick, do not block.
pub trait Observer: Send {
    /// `event` happened at `now`. Times never go back.
    fn on_event(&mut self, now: Instant, event: &Event<'_>);
}
