//! Which path carries the next packet.

mod algorithm;
mod analysis;
pub mod conformance;
mod ecf;
mod hbes;
mod lrf;
mod redundant;
mod reinjection;
mod rr;
mod sa_ecf;
mod view;
mod water_filling;

use std::fmt::Debug;

use marline_wire::{PathId, StreamId};

pub use algorithm::{PathAlgorithm, UnknownPathAlgorithm};
pub use analysis::{expected_wait, reorder_buffer_lrf, reorder_buffer_rr};
pub use ecf::{Ecf, EcfConfig, EcfVariant};
pub use hbes::{Hbes, HbesConfig, QueueModel};
pub use lrf::Lrf;
pub use redundant::Redundant;
pub use reinjection::{Outstanding, Reinject, Reinjection, ReinjectionConfig, ReinjectionOrder};
pub use rr::Rr;
pub use sa_ecf::{SaEcf, SaEcfConfig, Turns};
pub use view::{PathStatus, PathView, StreamView, Work};
pub use water_filling::WaterFilling;

/// What to do with the next packet's opportunity: an order, not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing is sent now. Ask again when a view has changed.
    Wait,
    /// `stream` is sent on `path`, whose window has room.
    Send {
        /// Whose data.
        stream: StreamId,
        /// On which path.
        path: PathId,
        /// Whether every other path that is usable and has room carries a copy.
        copies: bool,
    },
    /// `stream` is queued on `path`, whose window is full, and leaves when that has room. The packet is
    /// not sealed before, so that a path that fails returns what it has queued.
    Queue {
        /// Whose data.
        stream: StreamId,
        /// On which path.
        path: PathId,
    },
}

impl Plan {
    /// The path that is chosen.
    pub const fn path(&self) -> Option<PathId> {
        match self {
            Self::Wait => None,
            Self::Send { path, .. } | Self::Queue { path, .. } => Some(*path),
        }
    }

    /// The stream that is chosen.
    pub const fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Wait => None,
            Self::Send { stream, .. } | Self::Queue { stream, .. } => Some(*stream),
        }
    }

    /// One copy on a path that has room, or nothing.
    fn send(stream: StreamId, path: Option<&PathView>) -> Self {
        path.map_or(Self::Wait, |path| Self::Send {
            stream,
            path: path.id,
            copies: false,
        })
    }
}

/// Chooses among the paths of a connection.
///
/// It is asked once for every packet that may carry stream data, and its plan is carried out. Every
/// scheduler uses backup paths only while there is no other, and waits while every window is full, so that
/// what is queued stays bounded.
pub trait PathScheduler: Send + Debug {
    /// Where the next packet goes. `paths` are those that can be used now, by ascending ID; `work` is
    /// what there is to send.
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan;

    /// Whether [`Work::streams`] must have all streams that have something to send, and not only the
    /// next one.
    fn compares_streams(&self) -> bool {
        false
    }

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;
}

#[cfg(test)]
mod tests;
