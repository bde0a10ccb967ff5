//! Loss detection and congestion control.

use std::time::Duration;

use marline_wire::PathId;

use super::{PacketKind, PacketNumberSpace};

/// The reason why a packet was declared lost (RFC 9002, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossTrigger {
    /// Packet threshold: enough later packets were acknowledged.
    ReorderingThreshold,
    /// Time threshold: enough time passed after a later packet was acknowledged.
    TimeThreshold,
    /// The probe timeout fired.
    PtoExpired,
}

/// A packet was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct PacketLost {
    /// Path on which it was sent.
    pub path: PathId,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Packet number.
    pub number: u64,
    /// Size of the whole packet, in bytes.
    pub size: usize,
    /// Whether it was a PMTU probe, whose loss is not a sign of congestion.
    pub is_mtu_probe: bool,
    /// Reason of the declaration.
    pub trigger: LossTrigger,
}

/// A packet declared lost was acknowledged later.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLoss {
    /// Path on which it was sent.
    pub path: PathId,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Packet number.
    pub number: u64,
    /// Number of later packets acknowledged before it.
    pub reordering: u64,
    /// Time from its transmission to its acknowledgment.
    pub elapsed: Duration,
}

/// The initial window of a path was chosen; on the first path, after the handshake has authenticated the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialWindowChosen {
    /// The path.
    pub path: PathId,
    /// Window, in bytes.
    pub window: u64,
    /// Window of a path without history, in bytes.
    pub default: u64,
}

impl InitialWindowChosen {
    /// Whether the window is larger because of the history of earlier connections.
    pub const fn is_learnt(&self) -> bool {
        self.window > self.default
    }
}

/// Initial parameters of loss detection and congestion control (RFC 9002, appendices A.2 and B.2).
#[derive(Clone, Copy, Debug)]
pub struct RecoveryParametersSet {
    /// The path.
    pub path: PathId,
    /// Packet reordering threshold, if packets are counted.
    pub reordering_threshold: Option<u64>,
    /// Time reordering threshold as a multiple of the RTT.
    pub time_threshold: f64,
    /// Timer granularity.
    pub timer_granularity: Duration,
    /// Initial RTT.
    pub initial_rtt: Duration,
    /// Maximum datagram size, in bytes.
    pub max_datagram_size: u64,
    /// Initial window, in bytes.
    pub initial_congestion_window: u64,
    /// Minimum window, in bytes.
    pub minimum_congestion_window: u64,
    /// The controller's name.
    pub controller: &'static str,
}

/// The present RTT and congestion state of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsUpdated {
    /// The path.
    pub path: PathId,
    /// Minimum RTT; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Smoothed RTT.
    pub smoothed_rtt: Duration,
    /// Latest sample; `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// RTT variation.
    pub rtt_variance: Duration,
    /// Number of consecutive probe timeouts.
    pub pto_count: u32,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Ack-eliciting packets in flight.
    pub packets_in_flight: u64,
    /// Stream bytes assigned to the path and not yet sent; 0 with a single path.
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
    /// Previous phase in snake case; `None` for the first.
    pub old: Option<&'static str>,
    /// New phase in snake case.
    pub new: &'static str,
    /// Reason, in snake case.
    pub trigger: Option<&'static str>,
}

/// A timer of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Acknowledgment delay.
    Ack,
    /// Probe timeout.
    Pto,
    /// Time-threshold loss detection.
    LossTimeout,
    /// Path validation.
    PathValidation,
    /// Handshake timeout.
    Handshake,
    /// Idle timeout.
    Idle,
}

/// A change of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerChange {
    /// Set to expire after this time.
    Set(Duration),
    /// Expired.
    Expired,
    /// Cancelled.
    Cancelled,
}

/// A timer was set, expired or was cancelled.
#[derive(Clone, Copy, Debug)]
pub struct TimerUpdated {
    /// Path of the timer, if any.
    pub path: Option<PathId>,
    /// Kind of the timer.
    pub timer: Timer,
    /// Packet number space of the timer, if any.
    pub space: Option<PacketNumberSpace>,
    /// Change of the timer.
    pub change: TimerChange,
}
