//! What happens to a connection, for those who watch.

use marline_proto::scheduling::path::PathStatus;
use marline_proto::{ConnectionError, ErrorCode, PathId};
use tokio::sync::broadcast;

/// Events kept for a watcher that is behind.
pub(super) const CAPACITY: usize = 16;

/// Something that happened to a connection as a whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The handshake is complete (RFC 9001, section 4.1.1).
    Connected,
    /// The handshake is confirmed (RFC 9001, section 4.1.2).
    HandshakeConfirmed,
    /// The server did not take the early data; what was written is sent again.
    EarlyDataRejected,
    /// The peer speaks from another address now, or this side does.
    PathChanged,
    /// A path was opened, by the client; it is validated now and carries no data yet.
    PathOpened(PathId),
    /// A path carries data from now on.
    PathValidated(PathId),
    /// A path is abandoned, by either end, or because it did not work.
    PathClosed {
        /// Which.
        id: PathId,
        /// Why.
        error: ErrorCode,
    },
    /// The peer wants a path used in another way.
    PathStatus {
        /// Which.
        id: PathId,
        /// How.
        status: PathStatus,
    },
    /// Client: a path can be opened now, where that failed before because the peer allowed no more paths
    /// or had sent no connection IDs for one.
    PathsAvailable,
    /// The connection ended; the last event.
    Closed(ConnectionError),
}

/// The events of one connection from the moment of asking, in order.
///
/// Made by [`Connection::events`](crate::Connection::events). A watcher that falls 16 events behind
/// misses the oldest.
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
