//! Paths: addresses, sizes, marks.

use std::net::SocketAddr;

use super::PathId;

/// A path has other addresses. Without any, it is abandoned.
#[derive(Clone, Copy, Debug)]
pub struct PathAssigned {
    /// The path.
    pub path: PathId,
    /// Address here, if known.
    pub local: Option<SocketAddr>,
    /// Address of the peer.
    pub remote: Option<SocketAddr>,
}

/// A path carries datagrams of another size.
#[derive(Clone, Copy, Debug)]
pub struct MtuUpdated {
    /// The path.
    pub path: PathId,
    /// Bytes of UDP payload before.
    pub old: u16,
    /// Bytes of UDP payload now.
    pub new: u16,
    /// Whether the search is over.
    pub done: bool,
}

/// States of ECN validation (RFC 9000, appendix A.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnState {
    /// Marked packets are on their way.
    Testing,
    /// Waiting for acknowledgements of marked packets.
    Unknown,
    /// The path mangles marks.
    Failed,
    /// The path carries marks.
    Capable,
}

/// ECN validation moved on.
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
    /// It did not answer.
    ProbingAbandoned,
    /// It answered.
    ProbingSuccessful,
    /// Data goes over the new path.
    MigrationStarted,
    /// The new path did not hold.
    MigrationAbandoned,
    /// The old path is gone.
    MigrationComplete,
}

/// Migration moved on.
#[derive(Clone, Copy, Debug)]
pub struct MigrationStateUpdated {
    /// The path that migrates.
    pub path: PathId,
    /// The step before, if there was one.
    pub old: Option<MigrationState>,
    /// The step now.
    pub new: MigrationState,
}
