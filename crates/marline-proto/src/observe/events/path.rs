//! Paths: addresses, datagram size, ECN, migration.

use std::net::SocketAddr;

use marline_wire::PathId;

/// A path was assigned other addresses; without any, it was abandoned.
#[derive(Clone, Copy, Debug)]
pub struct PathAssigned {
    /// The path.
    pub path: PathId,
    /// Local address, if known.
    pub local: Option<SocketAddr>,
    /// Address of the peer.
    pub remote: Option<SocketAddr>,
}

/// The datagram size of a path has changed.
#[derive(Clone, Copy, Debug)]
pub struct MtuUpdated {
    /// The path.
    pub path: PathId,
    /// Previous size, in bytes of UDP payload.
    pub old: u16,
    /// New size, in bytes of UDP payload.
    pub new: u16,
    /// Whether the search is complete.
    pub done: bool,
}

/// State of ECN validation (RFC 9000, appendix A.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnState {
    /// Marked packets are sent.
    Testing,
    /// Waiting for acknowledgments of marked packets.
    Unknown,
    /// Validation failed, or ECN is not used.
    Failed,
    /// The path carries ECN codepoints.
    Capable,
}

/// ECN validation entered another state.
#[derive(Clone, Copy, Debug)]
pub struct EcnStateUpdated {
    /// The path.
    pub path: PathId,
    /// Previous state, if there was one.
    pub old: Option<EcnState>,
    /// New state.
    pub new: EcnState,
}

/// State of a migration (RFC 9000, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MigrationState {
    /// A new path is probed.
    ProbingStarted,
    /// The probe timed out.
    ProbingAbandoned,
    /// The new path responded.
    ProbingSuccessful,
    /// Data is sent on the new path.
    MigrationStarted,
    /// The new path failed.
    MigrationAbandoned,
    /// The old path is no longer used.
    MigrationComplete,
}

/// Migration entered another state.
#[derive(Clone, Copy, Debug)]
pub struct MigrationStateUpdated {
    /// The path that migrates.
    pub path: PathId,
    /// Previous state, if there was one.
    pub old: Option<MigrationState>,
    /// New state.
    pub new: MigrationState,
}
