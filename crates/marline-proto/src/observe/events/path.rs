//! Paths: addresses, datagram size, ECN, migration.

use std::net::SocketAddr;

use marline_wire::PathId;

/// A path got other addresses; without any, it is abandoned.
#[derive(Clone, Copy, Debug)]
pub struct PathAssigned {
    /// The path.
    pub path: PathId,
    /// Address here, if known.
    pub local: Option<SocketAddr>,
    /// Address of the peer.
    pub remote: Option<SocketAddr>,
}

/// The datagram size of a path has changed.
#[derive(Clone, Copy, Debug)]
pub struct MtuUpdated {
    /// The path.
    pub path: PathId,
    /// Bytes of UDP payload before.
    pub old: u16,
    /// Bytes of UDP payload now.
    pub new: u16,
    /// Whether the search for it has ended.
    pub done: bool,
}

/// States of ECN validation (RFC 9000, appendix A.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnState {
    /// Marked packets are sent.
    Testing,
    /// Waiting for acknowledgements of marked packets.
    Unknown,
    /// The path changes ECN codepoints.
    Failed,
    /// The path carries ECN codepoints.
    Capable,
}

/// ECN validation entered another state.
#[derive(Clone, Copy, Debug)]
pub struct EcnStateUpdated {
    /// The path.
    pub path: PathId,
    /// The state before, if there was one.
    pub old: Option<EcnState>,
    /// The state now.
    pub new: EcnState,
}

/// Steps of a migration (RFC 9000, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MigrationState {
    /// A new path is probed.
    ProbingStarted,
    /// It did not respond.
    ProbingAbandoned,
    /// It responded.
    ProbingSuccessful,
    /// Data is sent on the new path.
    MigrationStarted,
    /// The new path failed.
    MigrationAbandoned,
    /// The old path is no longer used.
    MigrationComplete,
}

/// Migration made a step.
#[derive(Clone, Copy, Debug)]
pub struct MigrationStateUpdated {
    /// The path that migrates.
    pub path: PathId,
    /// The step before, if there was one.
    pub old: Option<MigrationState>,
    /// The step now.
    pub new: MigrationState,
}
