//! Views of paths and streams for path schedulers: plain numbers.

use std::time::Duration;

use marline_wire::{PathId, StreamId};

use crate::scheduling::stream::Sharing;

/// Whether a path is for ordinary use (draft-ietf-quic-multipath-21, section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// It is for ordinary use.
    #[default]
    Available,
    /// It is used only while no other path is usable.
    Backup,
}

/// A path that can be used: it is validated and not suspected to have failed. Bytes are UDP payload.
///
/// A path is *full* when its window has no room: `in_flight >= window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// Which path.
    pub id: PathId,
    /// Whether it is for ordinary use.
    pub status: PathStatus,
    /// The smoothed round-trip time; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// How much the round-trip time varies.
    pub rttvar: Duration,
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes in flight, and bytes of its queue that the window has room for.
    pub in_flight: u64,
    /// Further bytes of its queue, which wait for acknowledgments.
    pub queued: u64,
    /// The size of a full packet, in bytes.
    pub mtu: u64,
}

impl PathView {
    /// Whether the window has no room.
    pub const fn is_full(&self) -> bool {
        self.in_flight >= self.window
    }

    /// Accounts for a packet of `bytes` bytes that is sent on this path: it counts as in flight if the window has
    /// room, and as queued otherwise.
    pub const fn take(&mut self, bytes: u64) {
        if self.is_full() {
            self.queued = self.queued.saturating_add(bytes);
        } else {
            self.in_flight = self.in_flight.saturating_add(bytes);
        }
    }

    /// The delay by which paths are ordered: paths without a sample come last.
    pub(super) fn delay(&self) -> Duration {
        self.smoothed_rtt.unwrap_or(Duration::MAX)
    }

    /// The window in bytes, to divide by.
    pub(super) const fn window_bytes(&self) -> f64 {
        if self.window == 0 {
            1.0
        } else {
            self.window as f64
        }
    }
}

/// A stream that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// Which stream.
    pub id: StreamId,
    /// Bytes that it has to send, as far as known; an end of the stream without bytes counts as one.
    pub remaining: u64,
    /// Its weight among the streams ([`Priority::weight`](crate::Priority::weight)).
    pub weight: u16,
    /// The path that carried its latest data.
    pub previous: Option<PathId>,
}

/// The data to send.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The streams that have something to send, in the order in which the stream scheduler would pick
    /// them; or the first alone ([`compares_streams`](super::PathScheduler::compares_streams)).
    pub streams: &'a [StreamView],
    /// Bytes that all streams together have to send.
    pub unsent: u64,
    /// How the streams share the opportunities to send.
    pub sharing: Sharing,
}

/// The paths to choose among: those that are available, or the backups if there are none.
pub(super) fn usable(paths: &[PathView]) -> impl Iterator<Item = &PathView> + Clone {
    let is_available = |path: &PathView| path.status == PathStatus::Available;
    let wanted = if paths.iter().any(is_available) {
        PathStatus::Available
    } else {
        PathStatus::Backup
    };
    paths.iter().filter(move |path| path.status == wanted)
}

/// The usable paths with room.
pub(super) fn open(paths: &[PathView]) -> impl Iterator<Item = &PathView> + Clone {
    usable(paths).filter(|path| !path.is_full())
}
