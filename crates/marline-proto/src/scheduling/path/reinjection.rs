//! Reinjection: copies of late data on another path (XLINK: Zheng et al., SIGCOMM 2021).

use std::time::Duration;

use marline_wire::PathId;

use super::PathView;
use super::view::usable;
use crate::Instant;
use crate::samples::scaled;
use crate::settings::{Named, Word};

/// Bytes that may be copied beyond the budget: a few packets, for short transfers.
const ALLOWANCE: u64 = 8 * 1200;

/// The configuration of reinjection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReinjectionConfig {
    /// Upper bound of copied bytes, as a part of all bytes sent. XLINK copies about 0.02.
    pub budget: f64,
    /// Which bytes are copied first.
    pub order: ReinjectionOrder,
}

/// Which bytes are copied first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReinjectionOrder {
    /// The oldest bytes: those that the peer reads next, and that block flow control.
    Oldest,
    /// The latest bytes of streams that are sent to their end: each copy makes the transfer complete earlier,
    /// even if the budget ends before all are copied. The oldest bytes of other streams.
    #[default]
    Ends,
}

impl Named for ReinjectionOrder {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "oldest",
            about: "The oldest bytes",
            value: Self::Oldest,
        },
        Word {
            name: "ends",
            about: "Of streams that are sent to their end the latest bytes, of others the oldest",
            value: Self::Ends,
        },
    ];
}

impl ReinjectionConfig {
    /// [`budget`](Self::budget) by default.
    pub const BUDGET: f64 = 0.05;
}

impl Default for ReinjectionConfig {
    fn default() -> Self {
        Self {
            budget: Self::BUDGET,
            order: ReinjectionOrder::default(),
        }
    }
}

/// Bytes that are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The path that carries them.
    pub path: PathId,
    /// When they were sent; `None` if they wait in the path's queue.
    pub sent_at: Option<Instant>,
    /// How many.
    pub bytes: u64,
}

/// The decision about outstanding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reinject {
    /// Send a copy on this path; bytes that wait in a queue are moved there.
    On(PathId),
    /// Nothing: their acknowledgment arrives before a copy would.
    Never,
    /// Nothing now: no other path has room, or the budget is used up.
    NotNow,
}

/// Copies bytes that are in flight on a slow path to a faster one, when there is nothing else to send.
///
/// The end of a transfer then does not wait for the slowest path. The caller must ensure that bytes are
/// copied once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reinjection {
    config: ReinjectionConfig,
    sent: u64,
    copied: u64,
}

impl Reinjection {
    /// A reinjection without history.
    pub const fn new(config: ReinjectionConfig) -> Self {
        Self {
            config,
            sent: 0,
            copied: 0,
        }
    }

    /// The bytes to copy first.
    pub const fn order(&self) -> ReinjectionOrder {
        self.config.order
    }

    /// Sets how many bytes were sent for the first time so far: the budget is a part of them.
    pub const fn set_sent(&mut self, bytes: u64) {
        self.sent = bytes;
    }

    /// `bytes` were copied.
    pub const fn on_copied(&mut self, bytes: u64) {
        self.copied = self.copied.saturating_add(bytes);
    }

    /// The decision about `oldest`, the oldest bytes that are neither acknowledged nor copied; there is nothing
    /// else to send.
    ///
    /// The other path must have room and be faster, and the copy must arrive before an acknowledgment of the
    /// original can: the original may be lost, which takes long to detect on a slow path. Bytes that wait in a
    /// queue are moved if they then arrive earlier. If the acknowledgment is overdue, any other path is good
    /// enough.
    pub fn plan(&self, now: Instant, paths: &[PathView], oldest: &Outstanding) -> Reinject {
        // The pacer of the other path may hold the copy back for a moment, which `flight` counts.
        let others = usable(paths).filter(|path| path.id != oldest.path && path.has_window());
        let Some(best) = others.min_by_key(|path| flight(path)) else {
            return Reinject::NotNow;
        };
        if oldest.sent_at.is_some() && !self.allows(oldest.bytes) {
            return Reinject::NotNow;
        }
        let sent_at = oldest.sent_at.unwrap_or(now);
        let original = paths.iter().find(|path| path.id == oldest.path);
        let (known, overdue) = original.map_or((sent_at, sent_at), |path| {
            let late = path.delay().saturating_add(path.rttvar.saturating_mul(4));
            let answer = match oldest.sent_at {
                Some(_) if best.delay() < path.delay() => path.way_back(),
                _ => Duration::ZERO,
            };
            (sent_at + flight(path) + answer, sent_at + late)
        });
        if now > overdue {
            return Reinject::On(best.id);
        }
        if best.smoothed_rtt.is_none() {
            return Reinject::NotNow;
        }
        match now + flight(best) < known {
            true => Reinject::On(best.id),
            false => Reinject::Never,
        }
    }

    /// Whether the path `to` is to carry a copy of `oldest`, the oldest bytes of another path that are neither acknowledged
    /// nor copied, before it carries new data.
    ///
    /// A path whose rate falls, as on a walk out of Wi-Fi, holds in its buffer what was sent at the rate before, and what
    /// another path delivers meanwhile waits for that. So these bytes are late when they have taken two round trips of the empty path and one of the
    /// other. Only what a rate-based controller knows of a path tells its delay from its queue: on other paths nothing is late.
    /// Backups carry no copies while another path works.
    pub fn is_late(
        &self,
        now: Instant,
        paths: &[PathView],
        oldest: &Outstanding,
        to: PathId,
    ) -> bool {
        let from = paths.iter().find(|path| path.id == oldest.path);
        let to = usable(paths).find(|path| path.id == to);
        let (Some(from), Some(to), Some(sent_at)) = (from, to, oldest.sent_at) else {
            return false;
        };
        let (Some(rate), Some(rtt)) = (from.rate, to.smoothed_rtt) else {
            return false;
        };
        let due = rate.min_rtt.saturating_mul(2) + rtt + to.rttvar.saturating_mul(4);
        now.saturating_since(sent_at) > due && self.allows(oldest.bytes)
    }

    fn allows(&self, bytes: u64) -> bool {
        let budget = (self.sent as f64 * self.config.budget) as u64;
        self.copied.saturating_add(bytes) <= budget.saturating_add(ALLOWANCE)
    }
}

/// Time until a packet on `path` arrives, its waiting time included; the maximum without a sample.
fn flight(path: &PathView) -> Duration {
    if path.rate.is_some() {
        return scaled(Duration::from_secs(1), path.departure()).saturating_add(path.one_way());
    }
    let rounds = path.queued as f64 / path.window_bytes() + 0.5;
    scaled(path.delay(), rounds)
}

#[cfg(test)]
mod tests;
