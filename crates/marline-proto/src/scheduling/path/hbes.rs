//! The path selector of HBES, SAPS (Xing et al., 2022, section III-C).

use std::time::Duration;

use marline_wire::PathId;

use super::view::usable;
use super::{PathScheduler, PathView, Plan, Work};

/// What a packet waits for before it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueModel {
    /// The path's queue drains at the path's rate, whether its window has room or not: equation 1 of the
    /// paper.
    #[default]
    Paper,
    /// What the window has room for leaves at once, and only the rest takes its time.
    FreeWindow,
}

/// The switches of [`Hbes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HbesConfig {
    /// What a packet waits for.
    pub queue_model: QueueModel,
    /// The size of a packet, in bytes, by which delays are rated; `None` is the path's own.
    pub packet: Option<u64>,
}

/// The path by which the packet arrives earliest, be its window full: then the packet waits there, while
/// later ones take other paths.
///
/// It waits only while every window is full. Equals keep the stream's previous path, and then go by ID.
/// Paths without a round-trip sample cannot be rated: they are used only while no path can be, so that
/// somebody must see to it that they get one, as path validation does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hbes {
    config: HbesConfig,
}

impl Hbes {
    /// A scheduler with these switches.
    pub const fn new(config: HbesConfig) -> Self {
        Self { config }
    }

    /// Seconds until the next packet that is given to `path` arrives: it waits for those before it, leaves,
    /// and travels for half a round trip. `None` for a path without a sample.
    pub fn arrival(&self, path: &PathView) -> Option<f64> {
        // Where delays are emulated there may be none.
        let rtt = path.smoothed_rtt?.max(Duration::from_micros(1));
        let packet = self.config.packet.unwrap_or(path.mtu);
        let bytes = path.queued.saturating_add(packet);
        let waits = match self.config.queue_model {
            QueueModel::Paper => bytes,
            QueueModel::FreeWindow => {
                bytes.saturating_sub(path.window.saturating_sub(path.in_flight))
            }
        };
        let rtt = rtt.as_secs_f64();
        Some(waits as f64 * rtt / path.window_bytes() + rtt / 2.0)
    }

    /// The usable path by which the next packet arrives earliest; `previous` goes before equals.
    fn earliest<'a>(
        &self,
        paths: &'a [PathView],
        previous: Option<PathId>,
    ) -> Option<&'a PathView> {
        let rated = usable(paths).filter_map(|path| Some((self.arrival(path)?, path)));
        let best = rated.reduce(|best, next| {
            let is_tie = next.0 == best.0 && previous == Some(next.1.id);
            if next.0 < best.0 || is_tie {
                next
            } else {
                best
            }
        });
        best.map(|(_, path)| path)
    }
}

impl PathScheduler for Hbes {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        let Some(stream) = work.streams.first() else {
            return Plan::Wait;
        };
        let Some(open) = usable(paths).find(|path| !path.is_full()) else {
            return Plan::Wait;
        };
        let path = self.earliest(paths, stream.previous).unwrap_or(open);
        if path.is_full() {
            return Plan::Queue {
                stream: stream.id,
                path: path.id,
            };
        }
        Plan::send(stream.id, Some(path))
    }

    fn name(&self) -> &'static str {
        "hbes"
    }
}
