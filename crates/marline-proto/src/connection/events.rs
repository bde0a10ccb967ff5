//! What a connection tells its application and its endpoint.

use std::collections::VecDeque;

use bytes::Bytes;
use marline_wire::{ConnectionId, ErrorCode, PathId, TransportError};

use crate::coordination::bundle::{JoinBundle, Signal};
use crate::scheduling::path::PathStatus;
use crate::streams::StreamEvent;

/// Something an application may want to act on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete; the application protocol is known.
    Connected,
    /// The server confirmed that nothing of the handshake need be repeated.
    HandshakeConfirmed,
    /// The server did not take the early data: what was written goes out again.
    ZeroRttRejected,
    /// Something about a stream.
    Stream(StreamEvent),
    /// Datagrams can be read, where there were none.
    DatagramReceived,
    /// Datagrams can be sent again.
    DatagramsUnblocked,
    /// The peer speaks from another address now, or we do.
    PathChanged,
    /// A path was opened, and is validated now.
    PathOpened(PathId),
    /// A path carries data from now on.
    PathValidated(PathId),
    /// A path is abandoned.
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
    /// Client: a path can be opened now. Told once after [`Connection::open_path`] failed for want of a
    /// path ID, of connection IDs, or because the handshake was not confirmed.
    ///
    /// [`Connection::open_path`]: crate::Connection::open_path
    PathsAvailable,
    /// The connection is over; the last event.
    Closed(ConnectionError),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// No version in common.
    #[error("the server does not speak QUIC version 1")]
    VersionMismatch,
    /// The peer broke the protocol, or we failed; we closed.
    #[error("the connection failed: {0}")]
    Transport(TransportError),
    /// The peer's transport closed.
    #[error("the peer closed the connection: {code}{}", explain(.reason))]
    PeerTransport {
        /// Its error code.
        code: ErrorCode,
        /// Type of the frame that caused it; 0 if unknown.
        frame_type: u64,
        /// Its explanation, not trusted.
        reason: String,
    },
    /// The peer's application closed.
    #[error("the peer's application closed the connection: code {code}{}", explain_bytes(.reason))]
    PeerApplication {
        /// The application's code.
        code: u64,
        /// Its explanation, not trusted.
        reason: Bytes,
    },
    /// Our application closed.
    #[error("the connection was closed here")]
    LocallyClosed,
    /// No packet came for the idle timeout.
    #[error("the connection timed out: the peer was silent for too long")]
    IdleTimeout,
    /// The handshake took too long.
    #[error("the handshake timed out")]
    HandshakeTimeout,
    /// The peer has no memory of the connection.
    #[error("the peer reset the connection: it has no state for it any more")]
    Reset,
}

fn explain(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", reason.escape_debug())
    }
}

fn explain_bytes(reason: &Bytes) -> String {
    explain(&String::from_utf8_lossy(reason))
}

/// What the endpoint must know to route datagrams.
#[derive(Clone, Debug, PartialEq)]
pub enum EndpointEvent {
    /// Datagrams with this destination connection ID are ours.
    Issued(ConnectionId),
    /// Datagrams with this destination connection ID are ours no more.
    Retired(ConnectionId),
    /// A datagram from the peer that ends with these bytes resets the connection.
    ResetTokenAdded([u8; 16]),
    /// No longer.
    ResetTokenRemoved([u8; 16]),
    /// The handshake no longer occupies the server.
    HandshakeDone,
    /// A client that has proven its address resumes a session: hear [`crate::Endpoint::poll_resumed`].
    Resumed,
    /// The connection belongs to a bundle.
    JoinBundle(Box<JoinBundle>),
    /// The engine of its bundle should know: hand it to [`crate::Endpoint::coordinate`].
    Bundle(Signal),
    /// The connection is drained: forget it.
    Drained,
}

/// Events that wait to be polled.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    pub(super) application: VecDeque<Event>,
    pub(super) endpoint: VecDeque<EndpointEvent>,
}
