//! How an endpoint behaves: a profile and what is different from it.

use std::net::SocketAddr;
use std::sync::Arc;

use marline::ack::{AsAsked, Decimation, EveryN};
use marline::congestion::slow_start::{HyStartPp, HybridSlowStart, NoExit};
use marline::congestion::{Algorithm, ConnectionKind, ControllerFactory};
use marline::coordination::bundle::BundleConfig;
use marline::recovery::loss::{Adaptive, Fixed};
use marline::scheduling::stream::{Fifo, Rfc9218, Wrr, WrrConfig};
use marline::{MtuConfig, Profile, TransportConfig};
use serde::{Serialize, Serializer};

use super::bundle::DescribedBundle;
use super::first_window::DescribedLearnt;
use super::multipath::DescribedMultipath;
use super::{FirstWindow, Multipath};

/// A profile, and what is different from it. `None` is the profile's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointSettings {
    /// The policies to start from.
    pub profile: Profile,
    /// The congestion controller.
    pub cc: Option<Algorithm>,
    /// The first congestion window.
    pub initial_window: Option<FirstWindow>,
    /// What ends slow start.
    pub slow_start_exit: Option<SlowStartExitKind>,
    /// When to acknowledge.
    pub ack: Option<AckKind>,
    /// What decides that packets are lost.
    pub loss_detection: Option<LossDetection>,
    /// What chooses among the streams of a connection.
    pub stream_scheduler: Option<StreamSchedulerKind>,
    /// Whether packets are spread over the round trip.
    pub pacing: Option<bool>,
    /// Whether packets are marked ECT(0).
    pub ecn: Option<bool>,
    /// The largest UDP payload to probe for, in bytes; 1200 does not probe.
    pub mtu: Option<u16>,
    /// What is left of the window after a loss, above 0 and below 1.
    pub backoff: Option<f64>,
    /// How what it sends is coordinated with the other connections of a bundle.
    pub bundle: Option<BundleConfig>,
    /// How several paths are used.
    pub multipath: Multipath,
}

/// What ends slow start before a loss does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartExitKind {
    /// Nothing.
    None,
    /// Hybrid slow start.
    Hybrid,
    /// RFC 9406.
    HyStartPp,
}

impl SlowStartExitKind {
    /// Every kind, with the name it has in scenarios.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("none", Self::None),
        ("hybrid", Self::Hybrid),
        ("hystart++", Self::HyStartPp),
    ];
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckKind {
    /// Every so many packets, or after 25 ms.
    Every(u64),
    /// Every tenth packet, 25 ms or a quarter of a round trip, once 100 packets have come.
    Decimation,
}

/// What decides that packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// RFC 9002: 3 packets or 9/8 of a round trip.
    Rfc9002,
    /// Time alone: 9/8 of a round trip.
    Gquic,
    /// Time alone: 3/2 of a round trip.
    Patient,
    /// RFC 9002, and growing with every loss that was none.
    Adaptive,
}

impl LossDetection {
    /// Every kind, with the name it has in scenarios.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("rfc9002", Self::Rfc9002),
        ("gquic", Self::Gquic),
        ("patient", Self::Patient),
        ("adaptive", Self::Adaptive),
    ];
}

/// What chooses among the streams that have something to send.
///
/// With the weighted ones, a stream sends whenever those that it depends on have nothing to send, as in
/// the paper's algorithm and RFC 7540, section 5.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSchedulerKind {
    /// One after another, as they came.
    Fifo,
    /// By urgency (RFC 9218).
    Rfc9218,
    /// Weighted round robin: a turn is as many packets as a stream weighs.
    Wrr,
    /// The same in short turns: of 10 packets for the heaviest, in proportion for others.
    ScatteredWrr,
}

impl StreamSchedulerKind {
    /// Every kind, with the name it has in scenarios.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("fifo", Self::Fifo),
        ("rfc9218", Self::Rfc9218),
        ("wrr", Self::Wrr),
        ("scattered_wrr", Self::ScatteredWrr),
    ];

    fn apply(self, config: &mut TransportConfig) {
        config.stream_scheduler = match self {
            Self::Fifo => Arc::new(|| Box::new(Fifo::default())),
            Self::Rfc9218 => Arc::new(|| Box::new(Rfc9218::default())),
            Self::Wrr => Arc::new(|| Box::new(Wrr::new(lax(WrrConfig::WRR)))),
            Self::ScatteredWrr => Arc::new(|| Box::new(Wrr::new(lax(WrrConfig::SCATTERED)))),
        };
    }
}

const fn lax(config: WrrConfig) -> WrrConfig {
    WrrConfig {
        strict_parent: false,
        ..config
    }
}

impl EndpointSettings {
    /// The same for the transport of one endpoint: what it learns of paths is shared with no other.
    pub fn transport(&self) -> TransportConfig {
        let mut config = self.profile.config();
        if let Some(algorithm) = self.cc {
            config.controller = Arc::new(algorithm);
        }
        if let Some(window) = &self.initial_window {
            window.apply(&mut config);
        }
        match self.slow_start_exit {
            None => {}
            Some(SlowStartExitKind::None) => config.slow_start_exit = Arc::new(|| Box::new(NoExit)),
            Some(SlowStartExitKind::Hybrid) => {
                config.slow_start_exit = Arc::new(|| Box::new(HybridSlowStart::default()));
            }
            Some(SlowStartExitKind::HyStartPp) => {
                config.slow_start_exit = Arc::new(|| Box::new(HyStartPp::default()));
            }
        }
        match self.ack {
            None => {}
            Some(AckKind::Every(packets)) => {
                let every = EveryN {
                    packets,
                    ..EveryN::default()
                };
                config.ack_policy = Arc::new(move || Box::new(AsAsked::new(every)));
            }
            Some(AckKind::Decimation) => {
                config.ack_policy = Arc::new(|| Box::new(Decimation::default()));
            }
        }
        match self.loss_detection {
            None => {}
            Some(LossDetection::Adaptive) => {
                config.loss_detector = Arc::new(|| Box::new(Adaptive::default()));
            }
            Some(LossDetection::Rfc9002) => {
                config.loss_detector = Arc::new(|| Box::new(Fixed::rfc9002()));
            }
            Some(LossDetection::Gquic) => {
                config.loss_detector = Arc::new(|| Box::new(Fixed::gquic()));
            }
            Some(LossDetection::Patient) => {
                config.loss_detector = Arc::new(|| Box::new(Fixed::patient()));
            }
        }
        if let Some(scheduler) = self.stream_scheduler {
            scheduler.apply(&mut config);
        }
        config.pacing = self.pacing.unwrap_or(config.pacing);
        config.ecn = self.ecn.unwrap_or(config.ecn);
        if let Some(ceiling) = self.mtu {
            config.mtu = MtuConfig {
                ceiling,
                discover: ceiling > SMALLEST_DATAGRAM,
            };
        }
        config.backoff = self.backoff.or(config.backoff);
        if let Some(bundle) = &self.bundle {
            config.bundle = Some(Arc::new(bundle.clone()));
        }
        self.multipath.apply(&mut config.multipath);
        config
    }
}

/// The UDP payload that every path carries, in bytes (RFC 9000, section 14).
pub(super) const SMALLEST_DATAGRAM: u16 = 1200;

/// Settings as they come out, the profile's included, asked of the policies themselves.
#[derive(Serialize)]
struct Described {
    profile: &'static str,
    cc: &'static str,
    initial_window_packets: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_window_learnt: Option<DescribedLearnt>,
    slow_start_exit: &'static str,
    ack: &'static str,
    ack_packets: Option<u64>,
    max_ack_delay_ms: u128,
    loss_detection: &'static str,
    stream_scheduler: &'static str,
    pacing: bool,
    ecn: bool,
    mtu: u16,
    backoff: Option<f64>,
    bundle: Option<DescribedBundle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multipath: Option<DescribedMultipath>,
}

impl Serialize for EndpointSettings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let config = self.transport();
        let packet = u64::from(SMALLEST_DATAGRAM);
        let kind = ConnectionKind {
            now: marline::Instant::EPOCH,
            peer: SocketAddr::from(([10, 0, 0, 1], 443)),
            server_name: None,
            resumed: false,
            max_datagram_size: packet,
        };
        let ack = (config.ack_policy)();
        let controller = marline::congestion::ControllerConfig::new(packet);
        Described {
            profile: self.profile.name(),
            cc: ControllerFactory::build(&*config.controller, controller).name(),
            initial_window_packets: config.initial_window.window(&kind) / packet,
            initial_window_learnt: self
                .initial_window
                .as_ref()
                .and_then(|window| window.learnt.as_deref())
                .map(DescribedLearnt::from),
            slow_start_exit: (config.slow_start_exit)().name(),
            ack: ack.name(),
            ack_packets: match self.ack {
                Some(AckKind::Every(packets)) => Some(packets),
                _ => None,
            },
            max_ack_delay_ms: ack.max_ack_delay().as_millis(),
            loss_detection: (config.loss_detector)().name(),
            stream_scheduler: (config.stream_scheduler)().name(),
            pacing: config.pacing,
            ecn: config.ecn,
            mtu: if config.mtu.discover {
                config.mtu.ceiling
            } else {
                SMALLEST_DATAGRAM
            },
            backoff: config.backoff,
            bundle: config.bundle.as_deref().map(DescribedBundle::from),
            multipath: config.multipath.as_ref().map(DescribedMultipath::from),
        }
        .serialize(to)
    }
}
