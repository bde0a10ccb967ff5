//! Path schedulers: which path carries the next packet.

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

pub use analysis::{expected_wait, reorder_buffer_lrf, reorder_buffer_rr};
pub use ecf::{Ecf, EcfConfig, EcfVariant};
pub use hbes::{Hbes, HbesConfig, QueueModel};
pub use lrf::Lrf;
pub use redundant::Redundant;
pub use reinjection::{Outstanding, Reinject, Reinjection, ReinjectionConfig, ReinjectionOrder};
pub use rr::Rr;
pub use sa_ecf::{SaEcf, SaEcfConfig, Turns};
pub(crate) use view::usable;
pub use view::{PathStatus, PathView, RateView, StreamView, Work, open};
pub use water_filling::WaterFilling;

use crate::settings::{Added, FormerName, Make, Registry, Spec};

/// Schedulers of paths, by name.
pub const SCHEDULERS: Registry<Make<dyn PathScheduler>> = Registry::new(
    "scheduler of paths",
    &[
        &rr::ENTRY,
        &lrf::ENTRY,
        &ecf::ENTRY,
        &sa_ecf::ENTRY,
        &hbes::ENTRY,
        &redundant::ENTRY,
        &water_filling::ENTRY,
    ],
)
.with_former(&[FormerName::read(
    "hbes_free_window",
    "hbes(queue_model=free_window)",
)])
.open_to(added);

/// The schedulers that the program adds.
fn added() -> &'static Added<Make<dyn PathScheduler>> {
    static ADDED: Added<Make<dyn PathScheduler>> = Added::new();
    &ADDED
}

/// The use of the next opportunity to send a packet; it holds no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing is sent until a view has changed.
    Wait,
    /// `stream` is sent on `path`, whose window has room.
    Send {
        /// The stream whose data is sent.
        stream: StreamId,
        /// The path that carries it.
        path: PathId,
        /// Whether every other usable path with room carries a copy.
        copies: bool,
    },
    /// `stream` is queued on `path`, whose window is full, and is sent when that has room. The packet is built
    /// only then, so that the segments queued on a path that fails can be sent on another one.
    Queue {
        /// The stream whose data is sent.
        stream: StreamId,
        /// The path that carries it.
        path: PathId,
    },
}

impl Plan {
    /// The path that was chosen.
    pub const fn path(&self) -> Option<PathId> {
        match self {
            Self::Wait => None,
            Self::Send { path, .. } | Self::Queue { path, .. } => Some(*path),
        }
    }

    /// The stream that was chosen.
    pub const fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Wait => None,
            Self::Send { stream, .. } | Self::Queue { stream, .. } => Some(*stream),
        }
    }

    /// Sends on a path that has room, if there is one.
    pub fn send(stream: StreamId, path: Option<&PathView>) -> Self {
        path.map_or(Self::Wait, |path| Self::Send {
            stream,
            path: path.id,
            copies: false,
        })
    }
}

/// Chooses among the paths of a connection.
///
/// It is called once for every packet that may carry stream data, and its plan is executed. Every scheduler
/// uses backup paths only while there is no other, and waits while every window is full, so that queues stay
/// bounded.
pub trait PathScheduler: Send + Debug {
    /// Plans the next packet. `paths` are those that can be used now, by ascending ID; `work` is the data to
    /// send.
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan;

    /// Whether [`Work::streams`] must contain all streams that have something to send, and not only the next.
    fn compares_streams(&self) -> bool {
        false
    }

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// How it is written in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

#[cfg(test)]
mod tests;
