//! Copies of what is late on its path (XLINK: Zheng et al., SIGCOMM 2021).

use std::time::Duration;

use marline_wire::PathId;

use super::PathView;
use super::view::open;
use crate::Instant;
use crate::samples::scaled;

/// Bytes that may be copied before any budget has built up: a few packets, for transfers that are short.
const ALLOWANCE: u64 = 8 * 1200;

/// How much is copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReinjectionConfig {
    /// Copied bytes as a part of all that were sent, at most. What XLINK copies is about 0.02.
    pub budget: f64,
}

impl Default for ReinjectionConfig {
    fn default() -> Self {
        Self { budget: 0.05 }
    }
}

/// Bytes that are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The path that carries them.
    pub path: PathId,
    /// When they left; if they wait in the path's queue, now.
    pub sent_at: Instant,
    /// How many.
    pub bytes: u64,
}

/// Sends again on a faster path what was sent on a slow one, when any scheduler has nothing else to do.
///
/// The end of a transfer then does not wait for the slowest path. Whoever asks sees to it that bytes are
/// copied once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reinjection {
    config: ReinjectionConfig,
    sent: u64,
    copied: u64,
}

impl Reinjection {
    /// Copies within these limits.
    pub const fn new(config: ReinjectionConfig) -> Self {
        Self {
            config,
            sent: 0,
            copied: 0,
        }
    }

    /// `bytes` were sent for the first time: the budget grows.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// The path that is to carry a copy of `oldest`, the oldest bytes that are not acknowledged; there is
    /// nothing else to send. The copy counts against the budget.
    ///
    /// A path must have room, and the copy must arrive before the original would. Where the original should
    /// be acknowledged by now it may not arrive at all, and any other path will do.
    pub fn plan(
        &mut self,
        now: Instant,
        paths: &[PathView],
        oldest: &Outstanding,
    ) -> Option<PathId> {
        let copied = self.copied.saturating_add(oldest.bytes);
        let budget = (self.sent as f64 * self.config.budget) as u64;
        if copied > budget.saturating_add(ALLOWANCE) {
            return None;
        }
        let others = open(paths).filter(|path| path.id != oldest.path);
        let best = others.min_by_key(|path| path.delay())?;
        let original = paths.iter().find(|path| path.id == oldest.path);
        let (arrives, overdue) = original.map_or((oldest.sent_at, oldest.sent_at), |path| {
            let late = path.delay().saturating_add(path.rttvar.saturating_mul(4));
            (oldest.sent_at + flight(path), oldest.sent_at + late)
        });
        let is_earlier = best.smoothed_rtt.is_some() && now + flight(best) < arrives;
        (is_earlier || now > overdue).then(|| {
            self.copied = copied;
            best.id
        })
    }
}

/// How long a packet on `path` waits and travels; without a sample, for ever.
fn flight(path: &PathView) -> Duration {
    let rounds = path.queued as f64 / path.window_bytes() + 0.5;
    scaled(path.delay(), rounds)
}

#[cfg(test)]
mod tests;
