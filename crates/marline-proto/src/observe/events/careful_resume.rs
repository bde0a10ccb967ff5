//! How a path returns to the capacity that an earlier connection found (RFC 9959), in the words of
//! draft-ietf-tsvwg-careful-resume-qlog.

use std::time::Duration;

use super::PathId;

/// A phase of Careful Resume (RFC 9959, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CarefulResumePhase {
    /// Finding out with the initial window whether this is the path that is remembered.
    Reconnaissance,
    /// Sending more than the path has proven to carry.
    Unvalidated,
    /// Waiting for what was sent that way.
    Validating,
    /// It was too much: waiting for it with a small window.
    SafeRetreat,
    /// Over.
    Normal,
}

/// Why a path entered a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CarefulResumeTrigger {
    /// The path is confirmed, and more data waits than the window lets leave.
    CongestionWindowLimited,
    /// The round-trip time is another one than remembered.
    RttNotValidated,
    /// As much is in flight as the jump allowed.
    LastUnvalidatedPacketSent,
    /// The first packet sent in the unvalidated phase, or a later one, was acknowledged.
    FirstUnvalidatedPacketAcknowledged,
    /// The unvalidated phase took a round trip.
    RttExceeded,
    /// What was sent in the unvalidated phase is less than the path has proven to carry.
    RateLimited,
    /// The last packet sent in the unvalidated phase, or a later one, was acknowledged.
    LastUnvalidatedPacketAcknowledged,
    /// The path is another one.
    PathChanged,
    /// A packet was lost.
    PacketLoss,
    /// A packet was marked.
    EcnCe,
    /// In safe retreat, the last unvalidated packet or a later one was acknowledged.
    ExitRecovery,
}

/// What is remembered of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarefulResumeRestored {
    /// What it carried in a round trip, in bytes.
    pub congestion_window: u64,
    /// Its smallest round-trip time.
    pub rtt: Duration,
}

/// A path entered another phase of Careful Resume; values are those afterwards.
#[derive(Clone, Copy, Debug)]
pub struct CarefulResumePhaseUpdated {
    /// The path.
    pub path: PathId,
    /// The phase before; `None` for the first.
    pub old: Option<CarefulResumePhase>,
    /// The phase now.
    pub new: CarefulResumePhase,
    /// What the path has proven to carry since the jump, in bytes.
    pub pipe_size: u64,
    /// Number of the first packet sent in the unvalidated phase, or of the packet that would be.
    pub first_unvalidated_packet: u64,
    /// Number of the last one sent so far.
    pub last_unvalidated_packet: u64,
    /// The controller's window, in bytes.
    pub congestion_window: Option<u64>,
    /// Where slow start ends, in bytes.
    pub ssthresh: Option<u64>,
    /// What is remembered of the path.
    pub restored: Option<CarefulResumeRestored>,
    /// Why, if the definitions have a word for it.
    pub trigger: Option<CarefulResumeTrigger>,
}
