//! Loss detection and congestion control.

use std::time::Duration;

use marline_wire::PathId;

use super::{PacketKind, PacketNumberSpace};

/// What declared a packet lost (RFC 9002, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossTrigger {
    /// Enough later packets were acknowledged.
    ReorderingThreshold,
    /// Enough time passed after a later packet was acknowledged.
    TimeThreshold,
    /// The probe timeout fired.
    PtoExpired,
}

/// A packet was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct PacketLost {
    /// The path it was sent on.
    pub path: PathId,
    /// Its kind.
    pub kind: PacketKind,
    /// Its number.
    pub number: u64,
    /// Bytes of the whole packet.
    pub size: usize,
    /// Whether it probed for a larger datagram size: its loss is no sign of congestion.
    pub is_mtu_probe: bool,
    /// What declared it lost.
    pub trigger: LossTrigger,
}

/// A packet declared lost was acknowledged after all.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLoss {
    /// The path it was sent on.
    pub path: PathId,
    /// Its kind.
    pub kind: PacketKind,
    /// Its number.
    pub number: u64,
    /// How many packets sent after it were acknowledged before it.
    pub reordering: u64,
    /// Time from sending it to its acknowledgement.
    pub elapsed: Duration,
}

/// The initial window of a path was chosen; on the first path, after the handshake has authenticated the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialWindowChosen {
    /// The path.
    pub path: PathId,
    /// The window, in bytes.
    pub window: u64,
    /// The window of a path without history, in bytes.
    pub default: u64,
}

impl InitialWindowChosen {
    /// Whether it is larger because of the history of earlier connections.
    pub const fn is_learnt(&self) -> bool {
        self.window > self.default
    }
}

/// Initial parameters of loss detection and congestion control (RFC 9002, appendices A.2 and B.2).
#[derive(Clone, Copy, Debug)]
pub struct RecoveryParametersSet {
    /// The path.
    pub path: PathId,
    /// Packets of reordering that are tolerated, if packets are counted.
    pub reordering_threshold: Option<u64>,
    /// Multiplier of the RTT after which an overtaken packet is lost.
    pub time_threshold: f64,
    /// The shortest timer.
    pub timer_granularity: Duration,
    /// RTT before the first sample.
    pub initial_rtt: Duration,
    /// Bytes of a full datagram.
    pub max_datagram_size: u64,
    /// Initial window, in bytes.
    pub initial_congestion_window: u64,
    /// Smallest window, in bytes.
    pub minimum_congestion_window: u64,
    /// The controller's name.
    pub controller: &'static str,
}

/// The present RTT and congestion state of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsUpdated {
    /// The path.
    pub path: PathId,
    /// Smallest RTT seen; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Smoothed RTT.
    pub smoothed_rtt: Duration,
    /// The last sample; `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// Variation of the RTT.
    pub rtt_variance: Duration,
    /// Probe timeouts in a row.
    pub pto_count: u32,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// Ack-eliciting packets sent and neither acknowledged nor lost.
    pub packets_in_flight: u64,
    /// Stream bytes that are assigned to the path and wait for its window or its pacer; with one path, 0.
    pub bytes_queued: u64,
    /// Slow-start threshold, in bytes; `None` while there is none.
    pub ssthresh: Option<u64>,
    /// Pacing rate, in bytes per second; `None` without pacing.
    pub pacing_rate: Option<u64>,
}

/// The controller entered another phase.
#[derive(Clone, Copy, Debug)]
pub struct CongestionStateUpdated {
    /// The path.
    pub path: PathId,
    /// The phase before in snake case; `None` for the first.
    pub old: Option<&'static str>,
    /// The phase now in snake case.
    pub new: &'static str,
    /// Why, in snake case.
    pub trigger: Option<&'static str>,
}

/// A timer of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// An acknowledgement is due.
    Ack,
    /// Probe timeout.
    Pto,
    /// Time-threshold loss detection.
    LossTimeout,
    /// Path validation.
    PathValidation,
    /// The handshake takes too long.
    Handshake,
    /// Idle timeout.
    Idle,
}

/// What happened to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerChange {
    /// It will fire after this time.
    Set(Duration),
    /// It fired.
    Expired,
    /// It will not fire.
    Cancelled,
}

/// A timer was set, fired or cancelled.
#[derive(Clone, Copy, Debug)]
pub struct TimerUpdated {
    /// The path it belongs to, if one.
    pub path: Option<PathId>,
    /// Which timer.
    pub timer: Timer,
    /// The space it belongs to, if one.
    pub space: Option<PacketNumberSpace>,
    /// What happened to it.
    pub change: TimerChange,
}
