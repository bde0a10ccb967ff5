//! How much may be in flight, and how fast it leaves (RFC 9002, section 7).
//!
//! A [`Controller`] sees samples and answers with numbers; it knows no packet, no path and no clock.
//! Each algorithm is one file (or folder) here, one name in [`Algorithm`], and one line in the tests
//! that runs [`conformance`] on it.

mod algorithm;
mod bbr;
pub mod conformance;
mod cubic;
mod initial_window;
mod loss_based;
mod new_reno;
mod olia;
mod pacer;
pub mod slow_start;

use std::fmt::Debug;
use std::time::Duration;

pub use algorithm::{Algorithm, ControllerConfig, ControllerFactory, UnknownAlgorithm};
pub use bbr::Bbr;
pub use cubic::Cubic;
pub use initial_window::{ConnectionKind, FixedWindow, InitialWindow, Rfc9002Window};
pub use loss_based::{Growth, LossBased, Step};
pub use new_reno::NewReno;
pub use olia::{Olia, OliaCoupling, OliaGroup, OliaMetric, OliaPath};
pub use pacer::Pacer;
pub use slow_start::SlowStartExit;

use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, RttView, SentSample};

/// The smallest window, in datagrams of maximum size (RFC 9002, section 7.2).
pub const MINIMUM_WINDOW_PACKETS: u64 = 2;

/// The largest window, in bytes: far beyond any path, and small enough that a window times a second
/// in nanoseconds fits in 64 bits.
pub const MAXIMUM_WINDOW: u64 = 1 << 32;

/// What a controller is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The window grows by what is acknowledged.
    SlowStart,
    /// The window grows slowly.
    CongestionAvoidance,
    /// The window was reduced, and what was in flight then is not yet acknowledged.
    Recovery,
    /// BBR: looking for the bottleneck's bandwidth.
    Startup,
    /// BBR: emptying the queue that startup built.
    Drain,
    /// BBR: at the estimated bandwidth, probing for more.
    ProbeBw,
    /// BBR: emptying the pipe to measure its delay.
    ProbeRtt,
    /// The application, not the window, limits what is in flight.
    ApplicationLimited,
}

/// A congestion controller of one path.
///
/// Windows are bytes, rates bytes per second.
pub trait Controller: Send + Debug {
    /// A packet that counts as in flight was sent.
    fn on_sent(&mut self, now: Instant, sent: &SentSample);

    /// Packets were acknowledged.
    fn on_ack(&mut self, now: Instant, ack: &AckSample);

    /// Packets were lost; called before `on_ack` when one ACK frame tells both.
    fn on_loss(&mut self, now: Instant, loss: &LossSample);

    /// The network marked packets instead of dropping them.
    fn on_ce(&mut self, now: Instant, ce: &CeSample);

    /// Every packet of the latest reduction arrived after all, the newest of them sent at `sent_at`:
    /// the reduction may be undone.
    fn on_spurious_loss(&mut self, _now: Instant, _sent_at: Instant) {}

    /// Sending resumes after `idle` with nothing in flight.
    fn on_idle(&mut self, _now: Instant, _idle: Duration) {}

    /// Datagrams may now be `mtu` bytes long.
    fn on_mtu(&mut self, mtu: u64);

    /// How many bytes may be in flight.
    fn window(&self) -> u64;

    /// How fast packets should leave, in bytes per second; at least 1.
    fn pacing_rate(&self, rtt: &RttView) -> u64;

    /// How many bytes may leave in one burst, without pacing between them.
    fn send_quantum(&self) -> u64;

    /// What it is doing, for logs and statistics. `ApplicationLimited` hides slow start and
    /// congestion avoidance: ask [`in_slow_start`](Self::in_slow_start) to decide anything.
    fn phase(&self) -> Phase;

    /// Whether the window is still searching for the path's capacity: slow start, or BBR's startup.
    fn in_slow_start(&self) -> bool;

    /// Where slow start ends, for logs; `None` while unknown or without meaning.
    fn ssthresh(&self) -> Option<u64>;

    /// A coordinator sets the window, bounded by the minimum and [`MAXIMUM_WINDOW`]. Congestion
    /// avoidance stays what it is however small the window, and no reaction before can be taken
    /// back. BBR soon returns to what its model says; before it has one, this is its initial window.
    fn set_window(&mut self, bytes: u64);

    /// A coordinator sets the part of one connection's growth in congestion avoidance that this
    /// controller takes: 0 < `share` <= 1, and 1 until it is set; no number and what is not above 0
    /// change nothing. N controllers with a share of 1/N each that back off together grow together
    /// like one. Slow start and rate-based controllers have no use for it.
    fn set_share(&mut self, _share: f64) {}

    /// A coordinator puts the controller back into slow start. The losses of a flight that was
    /// reduced for still count for nothing, and growth goes on with the first packet acknowledged
    /// that was sent after the reduction.
    fn enter_slow_start(&mut self);

    /// A coordinator ends slow start at the present window.
    fn exit_slow_start(&mut self);

    /// A coordinator says where slow start ends: a window of fewer than `bytes` grows in slow start until
    /// it is that large, as soon as recovery lets it; a larger one stays in congestion avoidance. Either
    /// way congestion avoidance begins anew, and no reaction before can be taken back. Rate-based
    /// controllers have no use for it.
    fn set_ssthresh(&mut self, _bytes: u64) {}

    /// A coordinator takes back the latest reaction to congestion, be it a smaller window or only
    /// the end of slow start: both are as before, and the losses of the flight that was reacted to
    /// still count for nothing. Persistent congestion stands, and so does what a coordinator has set
    /// since.
    fn undo_reaction(&mut self) {}

    /// A coordinator replaces the bandwidth estimate, in bytes per second; nothing where there is
    /// none. Where it is lower than before, the flight under way says nothing against it.
    fn set_bandwidth(&mut self, _bytes_per_second: u64) {}

    /// Whether a bandwidth estimate, not the window, is what the controller works with.
    fn is_rate_based(&self) -> bool {
        false
    }

    /// The estimated bandwidth of the bottleneck, in bytes per second.
    fn bandwidth(&self) -> Option<u64> {
        None
    }

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;
}

#[cfg(test)]
mod tests;
