//! Views of paths and streams for path schedulers: plain numbers.

use std::time::Duration;

use marline_wire::{PathId, StreamId};

use crate::samples::scaled;
use crate::scheduling::stream::Sharing;

/// The round-trip time to divide by, at least, in seconds: an emulated path may have no delay.
const MIN_RTT: f64 = 1e-6;

/// Whether a path is for ordinary use (draft-ietf-quic-multipath-21, section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// It is for ordinary use.
    #[default]
    Available,
    /// It is used only while no other path is usable.
    Backup,
}

/// The path as its rate-based controller estimates it. The window of such a controller is about twice what the path holds:
/// divided by the round-trip time it does not estimate the rate, and the pacer, not the window, limits what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateView {
    /// The rate at which the path delivers, in bytes per second; while the controller still searches for it, the window
    /// in a round-trip time, if that is more.
    pub bandwidth: u64,
    /// The smallest round-trip time, without queues.
    pub min_rtt: Duration,
    /// How long the pacer holds back a full packet that is sent after all that the queue of the path has.
    pub paced_for: Duration,
}

/// A path that can be used: it is validated and not suspected to have failed. Bytes are UDP payload.
///
/// A path is *full* when its window has no room, `in_flight >= window`, or when its pacer holds packets back
/// ([`RateView::paced_for`]).
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
    /// The estimates of a rate-based controller; `None` for others, and before the first sample.
    pub rate: Option<RateView>,
}

impl PathView {
    /// Whether a packet cannot leave now: the window has no room, or the pacer holds it back.
    pub fn is_full(&self) -> bool {
        let is_paced = |rate: RateView| !rate.paced_for.is_zero();
        !self.has_window() || self.rate.is_some_and(is_paced)
    }

    /// Whether the window has room, whatever the pacer says.
    pub const fn has_window(&self) -> bool {
        self.in_flight < self.window
    }

    /// Accounts for a packet of `bytes` bytes that is sent on this path: it counts as in flight if the window has
    /// room, and as queued otherwise.
    pub const fn take(&mut self, bytes: u64) {
        if !self.has_window() {
            self.queued = self.queued.saturating_add(bytes);
        } else {
            self.in_flight = self.in_flight.saturating_add(bytes);
        }
    }

    /// The delay by which paths are ordered: paths without a sample come last.
    pub(super) fn delay(&self) -> Duration {
        self.smoothed_rtt.unwrap_or(Duration::MAX)
    }

    /// Time from sending to arrival, queues of the network included; the maximum without a sample. A rate-based controller
    /// knows what part of the round trip is a queue, and that is on the way there.
    pub(super) fn one_way(&self) -> Duration {
        let Some(rtt) = self.smoothed_rtt else {
            return Duration::MAX;
        };
        self.rate
            .map_or(rtt / 2, |rate| rtt.saturating_sub(rate.min_rtt / 2))
    }

    /// Seconds until a packet that is sent now arrives, on a path that has a sample. Where the rate is known, all that is in flight arrives
    /// before: round-trip times tell of a queue only a round trip later, which is too late for a narrow path in slow start.
    pub fn arrival(&self) -> f64 {
        let one_way = self.one_way().as_secs_f64();
        self.rate.map_or(one_way, |rate| {
            let in_flight = self.in_flight.saturating_add(self.mtu) as f64;
            let behind = in_flight / self.delivery_rate() - rate.min_rtt.as_secs_f64() / 2.0;
            one_way.max(behind)
        })
    }

    /// Time from the arrival of a packet to that of its acknowledgment; the maximum without a sample.
    pub(super) fn way_back(&self) -> Duration {
        self.rate
            .map_or_else(|| scaled(self.delay(), 0.5), |rate| rate.min_rtt / 2)
    }

    /// The rate at which the path delivers, in bytes per second; 0 without a sample.
    pub fn delivery_rate(&self) -> f64 {
        match (self.rate, self.smoothed_rtt) {
            (Some(rate), _) => rate.bandwidth.max(1) as f64,
            (None, Some(rtt)) => self.window_bytes() / rtt.as_secs_f64().max(MIN_RTT),
            (None, None) => 0.0,
        }
    }

    /// Seconds until a packet that is queued now leaves, behind what is queued already, on a path that has a sample.
    pub fn departure(&self) -> f64 {
        let paced = self.rate.map_or(0.0, |rate| rate.paced_for.as_secs_f64());
        paced.max(self.queued as f64 / self.delivery_rate())
    }

    /// The window in bytes, to divide by.
    pub const fn window_bytes(&self) -> f64 {
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
pub(crate) fn usable(paths: &[PathView]) -> impl Iterator<Item = &PathView> + Clone {
    let is_available = |path: &PathView| path.status == PathStatus::Available;
    let wanted = if paths.iter().any(is_available) {
        PathStatus::Available
    } else {
        PathStatus::Backup
    };
    paths.iter().filter(move |path| path.status == wanted)
}

/// The paths that a packet may be sent on now: usable ones with room; backups only while there is no other.
pub fn open(paths: &[PathView]) -> impl Iterator<Item = &PathView> + Clone {
    usable(paths).filter(|path| !path.is_full())
}
