//! How much may be in flight, and how fast it leaves (RFC 9002, section 7).
//!
//! A [`Controller`] sees samples and answers with numbers; it knows no packet, no path and no clock.
//! Each algorithm is one file (or folder) here, with its entry in [`CONTROLLERS`]: the tests run
//! [`conformance`] on each of them.

mod algorithm;
mod bbr;
mod bbr3;
pub mod conformance;
mod cubic;
mod delivery_rate;
mod event;
mod initial_window;
mod loss_based;
mod max_filter;
mod new_reno;
mod olia;
mod pacer;
mod path_model;
mod prague;
mod rounds;
pub mod slow_start;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

pub use algorithm::{Algorithm, ControllerConfig, ControllerFactory, PerPath};
pub use bbr::Bbr;
pub use bbr3::{Bbr3, Bbr3Config};
pub use cubic::Cubic;
pub use delivery_rate::DeliveryRate;
pub(crate) use event::{CongestionEvent, Reaction};
pub use initial_window::{ConnectionKind, FixedWindow, InitialWindow, Rfc9002Window};
pub use loss_based::{Growth, GrowthSample, LossBasedController};
pub use new_reno::NewReno;
pub use olia::{Olia, OliaCoupling, OliaGroup, OliaMetric, OliaPath};
pub use pacer::Pacer;
pub use path_model::PathModel;
pub use prague::Prague;
pub use slow_start::SlowStartExit;

use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, PacketLoss, RttView, SentSample};
use crate::settings::{Added, Registry, Spec};

/// Congestion controllers, by name.
pub const CONTROLLERS: Registry<Arc<dyn ControllerFactory>> = Registry::new(
    "controller",
    &[
        &new_reno::ENTRY,
        &cubic::ENTRY,
        &bbr::ENTRY,
        &bbr3::ENTRY,
        &bbr3::WIRELESS,
        &olia::ENTRY,
        &prague::ENTRY,
    ],
)
.open_to(added);

/// The controllers that the program adds.
fn added() -> &'static Added<Arc<dyn ControllerFactory>> {
    static ADDED: Added<Arc<dyn ControllerFactory>> = Added::new();
    &ADDED
}

/// Initial windows, by name. Those that are learnt of earlier connections need a store, and have settings of
/// their own ([`history`](crate::coordination::history)).
pub const INITIAL_WINDOWS: Registry<Arc<dyn InitialWindow>> = Registry::new(
    "initial window",
    &[&initial_window::RFC9002, &initial_window::FIXED],
);

/// The smallest window, in datagrams of maximum size (RFC 9002, section 7.2).
pub const MINIMUM_WINDOW_PACKETS: u64 = 2;

/// The largest window, in bytes: larger than any path needs, and small enough that its product with a second
/// in nanoseconds fits in 64 bits.
pub const MAXIMUM_WINDOW: u64 = 1 << 32;

/// The phase of a controller, for logs and statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The window grows by what is acknowledged.
    SlowStart,
    /// The window grows slowly.
    CongestionAvoidance,
    /// The window was reduced, and what was in flight then is not yet acknowledged.
    Recovery,
    /// BBR: searching for the bandwidth of the bottleneck.
    Startup,
    /// BBR: draining the queue that startup built.
    Drain,
    /// BBR: at the estimated bandwidth, probing for more.
    ProbeBw,
    /// BBR: draining the path to measure its delay.
    ProbeRtt,
    /// App-limited: the application, not the window, limits the bytes in flight.
    ApplicationLimited,
}

/// A congestion controller of one path.
///
/// Windows are bytes, rates bytes per second.
pub trait Controller: Coordinated + Send + Debug {
    /// A packet that counts as in flight was sent.
    fn on_sent(&mut self, now: Instant, sent: &SentSample);

    /// Packets were acknowledged.
    fn on_ack(&mut self, now: Instant, ack: &AckSample);

    /// A packet was lost: called for each of them, in ascending order, before [`on_loss`](Self::on_loss) for all.
    fn on_packet_lost(&mut self, _now: Instant, _lost: &PacketLoss) {}

    /// Packets were lost; called before `on_ack` if one ACK frame causes both.
    fn on_loss(&mut self, now: Instant, loss: &LossSample);

    /// The network marked packets instead of dropping them.
    fn on_ce(&mut self, now: Instant, ce: &CeSample);

    /// All losses of the latest reduction were spurious; the newest of the packets was sent at `sent_at`. The
    /// reduction may be undone, unless a [mark](Self::on_ce) of the same flight demands it as well.
    fn on_spurious_loss(&mut self, _now: Instant, _sent_at: Instant) {}

    /// Sending resumes after nothing was in flight for `idle`.
    fn on_idle(&mut self, _now: Instant, _idle: Duration) {}

    /// Datagrams may now be `mtu` bytes long.
    fn on_mtu(&mut self, mtu: u64);

    /// The congestion window: how many bytes may be in flight.
    fn window(&self) -> u64;

    /// The pacing rate, in bytes per second; at least 1.
    fn pacing_rate(&self, rtt: &RttView) -> u64;

    /// The phase, for logs and statistics. `ApplicationLimited` hides slow start and congestion avoidance:
    /// decisions must use [`in_slow_start`](Self::in_slow_start).
    fn phase(&self) -> Phase;

    /// Whether the window is still searching for the path's capacity: slow start, or BBR's startup.
    fn in_slow_start(&self) -> bool;

    /// The slow-start threshold in bytes, for logs; `None` if unknown or without meaning.
    fn ssthresh(&self) -> Option<u64>;

    /// Whether the controller works with a bandwidth estimate rather than a window.
    fn is_rate_based(&self) -> bool {
        false
    }

    /// The estimated bandwidth of the bottleneck, in bytes per second.
    fn bandwidth(&self) -> Option<u64> {
        None
    }

    /// Whether it answers marks of packets that carried ECT(1) in proportion to the part of packets that is marked, as
    /// their senders must (RFC 9331, section 4.3).
    fn is_scalable(&self) -> bool {
        false
    }

    /// A short, lower-case name for logs and command lines.
    fn name(&self) -> &'static str;

    /// How it is written in settings.
    fn spec(&self) -> Spec {
        Spec::named(self.name())
    }
}

/// The methods of a controller that only coordinators call: bundles, Careful Resume and the history of paths.
pub trait Coordinated {
    /// Sets the window, bounded by the minimum and [`MAXIMUM_WINDOW`]. Congestion avoidance
    /// continues however small the window, and no earlier reaction can be undone. BBR soon returns to the
    /// window of its model; before it has a model, this is its initial window.
    fn set_window(&mut self, bytes: u64);

    /// Sets the part of one connection's growth in congestion avoidance that this
    /// controller takes: 0 < `share` <= 1, and 1 until it is set; NaN and values of 0 or less are ignored. N
    /// controllers with a share of 1/N each that back off together grow like one controller. It has no effect
    /// on slow start and on rate-based controllers.
    fn set_share(&mut self, _share: f64) {}

    /// Puts the controller back into slow start. Further losses of the flight that caused the
    /// latest reduction are ignored, and growth continues with the first acknowledged packet that was sent after
    /// the reduction.
    fn enter_slow_start(&mut self);

    /// Ends slow start at the present window.
    fn exit_slow_start(&mut self);

    /// Sets the slow-start threshold: a window of fewer than `bytes` grows in slow start until it
    /// is that large, once recovery has ended; a larger one stays in congestion avoidance. Either way the state
    /// of congestion avoidance is reset, and no earlier reaction can be undone. No effect on rate-based
    /// controllers.
    fn set_ssthresh(&mut self, _bytes: u64) {}

    /// Replaces the bandwidth estimate, in bytes per second; no effect on controllers without one.
    /// If it is lower than before, samples of the packets in flight do not raise it again.
    fn set_bandwidth(&mut self, _bytes_per_second: u64) {}

    /// The model of the path that was measured; `None` before bandwidth and delay are measured, and from controllers without a
    /// model.
    fn model(&self) -> Option<PathModel> {
        None
    }

    /// Begins from the `model` that another connection measured: from now on it sends at
    /// `first_rate` bytes per second at least. Returns whether it does. `false`, and no effect, from controllers that
    /// cannot (window-based ones: see [`set_window`](Self::set_window)), after startup, if one was taken before in this
    /// startup, and if `first_rate` is 0 or the model not [sound](PathModel::is_sound).
    ///
    /// - `min_rtt` and `random_loss` are believed at once, like measurements of now, and replaced like those: by a smaller
    ///   sample or when they expire, and as packets arrive or are lost.
    /// - `first_rate`, usually a part of the bandwidth, is tried for a round trip: pacing and window permit it until a
    ///   packet sent since is acknowledged. [`bandwidth`](Controller::bandwidth) stays what was measured.
    /// - Delivery rate and losses of that round trip decide. With too many losses, startup ends at the rate that was
    ///   delivered. Otherwise it goes on from there; if the first rate was not delivered, as without a seed.
    /// - `bandwidth` itself is never trusted: if it `is_limit`, startup exceeds it by no more than a quarter, and ends where
    ///   that much is delivered and a queue begins. Where clearly more is delivered, startup goes on.
    fn seed(&mut self, _now: Instant, _model: &PathModel, _first_rate: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
