//! The path selector of HBES, SAPS (Xing et al., 2022, section III-C).

use std::sync::Arc;
use std::time::Duration;

use marline_wire::PathId;

use super::view::usable;
use super::{PathScheduler, PathView, Plan, Work};
use crate::settings::{Domain, Entry, Field, Make, Named, Settings, Spec, Word};

/// Its name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn PathScheduler>, HbesConfig> = Entry {
    name: "hbes",
    about: "The path on which the packet arrives first, its queue included",
    parameters: HbesConfig::SETTINGS,
    default: HbesConfig::default,
    make: |config| Arc::new(move || Box::new(Hbes::new(config))),
};

/// The model of the time that a packet waits before it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueModel {
    /// The queue of a path drains at the rate of the path, even if its window has room: equation 1 of the paper.
    #[default]
    Paper,
    /// Bytes that the window has room for are sent at once, and only the rest waits.
    FreeWindow,
}

impl Named for QueueModel {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "paper",
            about: "The path's queue drains at the path's rate, whether its window has room or not",
            value: Self::Paper,
        },
        Word {
            name: "free_window",
            about: "What the window has room for leaves at once",
            value: Self::FreeWindow,
        },
    ];
}

/// The configuration of [`Hbes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HbesConfig {
    /// The model of the waiting time.
    pub queue_model: QueueModel,
    /// Size of a packet for the calculation of delays, in bytes; `None` is a full packet of the path.
    pub packet: Option<u64>,
}

impl HbesConfig {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "queue_model",
            Domain::words::<QueueModel>(),
            "How the delay in a path's queue is estimated",
            |c: &mut Self| &mut c.queue_model,
        ),
        &Field::new(
            "packet",
            Domain::bytes(1, 65_535).or("mtu"),
            "The packet size for which delays are estimated",
            |c: &mut Self| &mut c.packet,
        ),
    ];
}

/// Chooses the path on which the packet arrives earliest, even if its window is full: then the packet is
/// queued there, while later ones are sent on other paths.
///
/// It waits only while every window is full. Among equal paths, the previous path of the stream is preferred,
/// and then the lowest ID. Paths without a round-trip sample cannot be compared: they are used only while no
/// path has one. Path validation gives them one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hbes {
    config: HbesConfig,
}

impl Hbes {
    /// A scheduler with this configuration.
    pub const fn new(config: HbesConfig) -> Self {
        Self { config }
    }

    /// Seconds until the next packet of `path` arrives: it waits for those before it, is sent, and arrives half
    /// a round trip later. `None` for a path without a sample. With a rate-based controller it waits for the pacer, and
    /// leaves at the rate of the path.
    pub fn arrival(&self, path: &PathView) -> Option<f64> {
        // An emulated path may have no delay.
        let rtt = path.smoothed_rtt?.max(Duration::from_micros(1));
        if path.rate.is_some() {
            return Some(path.departure() + path.one_way().as_secs_f64());
        }
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

    /// The usable path on which the next packet arrives earliest; `previous` wins among equals.
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
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(&self.config)
    }
}
