//! The path history that the connections of an endpoint share.

use std::fmt::Debug;

use super::{Capacity, PathSample, PathStore};
use crate::congestion::ConnectionKind;

/// Observations of paths by earlier connections for later ones: temporal sharing of TCP control blocks
/// (RFC 9040, section 6), and the saved congestion control parameters of RFC 9959.
///
/// Connections call it on their own threads; it may lock, and must not block for I/O.
pub trait PathHistory: Send + Sync + Debug {
    /// Reports what the connection that `kind` describes has observed of its path. Later connections of
    /// other peers may depend on it: call this only for peers whose address is validated.
    fn observe(&self, kind: &ConnectionKind<'_>, seen: &PathSample);

    /// The saved capacity of the path of the connection that `kind` describes, if careful resume may use
    /// it. It stays available to others; a connection must [`claim`](Self::claim) it before it jumps.
    fn saved(&self, _kind: &ConnectionKind<'_>) -> Option<Capacity> {
        None
    }

    /// Removes the [`saved`](Self::saved) capacity for the use of the connection that `kind` describes:
    /// one connection at a time resumes from it (RFC 9959, section 3.2). The next connection that
    /// reports a capacity saves it again.
    fn claim(&self, _kind: &ConnectionKind<'_>) -> Option<Capacity> {
        None
    }

    /// Removes the saved capacity of the path of the connection that `kind` describes, which has turned
    /// out to be wrong.
    fn forget(&self, _kind: &ConnectionKind<'_>) {}

    /// The store of its records, if it has one; for metrics.
    fn store(&self) -> Option<&dyn PathStore> {
        None
    }
}
