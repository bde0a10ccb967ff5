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
    /// What is copied first.
    pub order: ReinjectionOrder,
}

/// What is copied first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReinjectionOrder {
    /// The oldest bytes: what the peer reads, and what its flow control waits for.
    Oldest,
    /// Of streams that are sent to their end the latest bytes, which arrive last: the transfer ends earlier
    /// with every one of them, be the budget used up. Of other streams the oldest.
    #[default]
    Ends,
}

impl Default for ReinjectionConfig {
    fn default() -> Self {
        Self {
            budget: 0.05,
            order: ReinjectionOrder::default(),
        }
    }
}

/// Bytes that are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The path that carries them.
    pub path: PathId,
    /// When they left; `None` if they wait in the path's queue.
    pub sent_at: Option<Instant>,
    /// How many.
    pub bytes: u64,
}

/// What is to become of bytes that are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reinject {
    /// This path carries a copy. What waits in a queue moves there.
    On(PathId),
    /// Nothing: that they arrived is known before a copy would.
    Never,
    /// Nothing now: no other path has room, or the budget is used up.
    NotNow,
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

    /// What is copied first.
    pub const fn order(&self) -> ReinjectionOrder {
        self.config.order
    }

    /// So many bytes were sent for the first time so far: the budget is a part of them.
    pub const fn set_sent(&mut self, bytes: u64) {
        self.sent = bytes;
    }

    /// `bytes` were copied.
    pub const fn on_copied(&mut self, bytes: u64) {
        self.copied = self.copied.saturating_add(bytes);
    }

    /// What is to become of `oldest`, the oldest bytes that nobody copied and that are not acknowledged;
    /// there is nothing else to send.
    ///
    /// A path must have room and be faster, and the copy must arrive before anybody could know that the
    /// original has: it may be lost, and on a slow path that takes long to notice. What waits in a queue
    /// must arrive earlier than from there. Where the original should be acknowledged by now, any other path
    /// will do.
    pub fn plan(&self, now: Instant, paths: &[PathView], oldest: &Outstanding) -> Reinject {
        let others = open(paths).filter(|path| path.id != oldest.path);
        let Some(best) = others.min_by_key(|path| path.delay()) else {
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
                Some(_) if best.delay() < path.delay() => scaled(path.delay(), 0.5),
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

    fn allows(&self, bytes: u64) -> bool {
        let budget = (self.sent as f64 * self.config.budget) as u64;
        self.copied.saturating_add(bytes) <= budget.saturating_add(ALLOWANCE)
    }
}

/// How long a packet on `path` waits and travels; without a sample, for ever.
fn flight(path: &PathView) -> Duration {
    let rounds = path.queued as f64 / path.window_bytes() + 0.5;
    scaled(path.delay(), rounds)
}

#[cfg(test)]
mod tests;
