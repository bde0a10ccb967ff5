//! Events of a connection as a whole.

use marline_proto::scheduling::path::PathStatus;
use marline_proto::{ConnectionError, ErrorCode, PathId};
use tokio::sync::broadcast;

/// Events kept for a receiver that has not read them yet.
pub(super) const CAPACITY: usize = 16;

/// Something that happened to a connection as a whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The handshake is complete (RFC 9001, section 4.1.1).
    Connected,
    /// The handshake is confirmed (RFC 9001, section 4.1.2).
    HandshakeConfirmed,
    /// The server rejected the early data; what was written is sent again.
    EarlyDataRejected,
    /// The peer's address or this side's has changed (RFC 9000, section 9).
    PathChanged,
    /// The client opened a path; validation is in progress, and the path carries no data yet.
    PathOpened(PathId),
    /// A path carries data from now on.
    PathValidated(PathId),
    /// A path was abandoned: by either end, or because it failed.
    PathClosed {
        /// The path.
        id: PathId,
        /// The code with which it was abandoned.
        error: ErrorCode,
    },
    /// The peer changed the status of a path.
    PathStatus {
        /// The path.
        id: PathId,
        /// The new status.
        status: PathStatus,
    },
    /// Client: a path can be opened now, where that failed before because the peer allowed no more paths
    /// or had sent no connection IDs for one.
    PathsAvailable,
    /// The connection ended; the last event.
    Closed(ConnectionError),
}

/// The events of one connection from the call of [`Connection::events`](crate::Connection::events) on, in
/// order.
///
/// A receiver that is more than 16 events behind misses the oldest.
#[derive(Debug)]
pub struct Events(pub(super) broadcast::Receiver<ConnectionEvent>);

impl Events {
    /// The next event; `None` when the connection has ended. Safe to cancel.
    pub async fn next(&mut self) -> Option<ConnectionEvent> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
