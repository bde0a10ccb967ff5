//! Events for the application and for the endpoint.

use std::collections::VecDeque;

use bytes::Bytes;
use marline_wire::{ConnectionId, ErrorCode, PathId, TransportError};

use crate::coordination::bundle::{JoinBundle, Signal};
use crate::scheduling::path::PathStatus;
use crate::streams::StreamEvent;

/// An event for the application.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete; the application protocol is known.
    Connected,
    /// The handshake is confirmed (RFC 9001, section 4.1.2).
    HandshakeConfirmed,
    /// The server rejected 0-RTT data, which is sent again.
    ZeroRttRejected,
    /// An event of a stream.
    Stream(StreamEvent),
    /// Datagrams became readable.
    DatagramReceived,
    /// Datagrams can be sent again.
    DatagramsUnblocked,
    /// The peer's or the local address has changed.
    PathChanged,
    /// Client: a probe timeout of the only path expired, at least the third in a row, and nothing has arrived meanwhile:
    /// [`Connection::unresponsive_since`](crate::Connection::unresponsive_since).
    PathUnresponsive,
    /// A path was opened; its validation has started.
    PathOpened(PathId),
    /// A path can carry data from now on.
    PathValidated(PathId),
    /// A path was abandoned.
    PathClosed {
        /// The path.
        id: PathId,
        /// The reason.
        error: ErrorCode,
    },
    /// The peer has changed the status of a path.
    PathStatus {
        /// The path.
        id: PathId,
        /// Its status.
        status: PathStatus,
    },
    /// Client: a path can be opened now. Emitted once after [`Connection::open_path`] failed because path
    /// IDs or connection IDs were missing, or the handshake was not confirmed.
    ///
    /// [`Connection::open_path`]: crate::Connection::open_path
    PathsAvailable,
    /// The connection has ended; the last event.
    Closed(ConnectionError),
}

/// Why a client's connection cannot migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// The handshake is not confirmed (RFC 9000, section 9).
    #[error("its handshake is not confirmed")]
    NotConfirmed,
    /// The server sent `disable_active_migration` (RFC 9000, section 18.2).
    #[error("the server does not allow it")]
    Forbidden,
    /// No connection ID of the server is left that was not used from another address (RFC 9000, section 9.5).
    #[error("the server has provided no connection ID for another address")]
    NoConnectionId,
    /// It has ended, is a server's, or has several paths: each of these has its own addresses.
    #[error("it does not consist of one path of a client")]
    NotApplicable,
}

/// The unreachable part according to an ICMP message "destination unreachable" (RFC 792; RFC 4443, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// There is no route to the network.
    #[error("there is no route to its network")]
    Network,
    /// The host does not answer.
    #[error("its network cannot reach the host")]
    Host,
    /// No program uses the UDP port.
    #[error("its UDP port is closed")]
    Port,
}

/// The reason why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// No common version of QUIC.
    #[error("the server supports none of the offered QUIC versions")]
    VersionMismatch,
    /// This end closed the connection because of a protocol violation or an internal error.
    #[error("the connection failed: {0}")]
    Transport(TransportError),
    /// The peer closed the connection with a transport error.
    #[error("the peer closed the connection: {code}{}", explain(.reason))]
    PeerTransport {
        /// The peer's error code.
        code: ErrorCode,
        /// Type of the offending frame; 0 if unknown.
        frame_type: u64,
        /// The peer's explanation, not trusted.
        reason: String,
    },
    /// The peer's application closed the connection.
    #[error("the peer's application closed the connection: code {code}{}", explain_bytes(.reason))]
    PeerApplication {
        /// The application's code.
        code: u64,
        /// The peer's explanation, not trusted.
        reason: Bytes,
    },
    /// This end closed the idle connection because its endpoint was full.
    #[error("the connection was closed locally: it was idle, and another client needed its place")]
    Evicted,
    /// The application of this end closed the connection.
    #[error("the connection was closed locally")]
    LocallyClosed,
    /// The endpoint has failed, and all its connections with it.
    #[error("the endpoint failed: {0}")]
    EndpointFailed(EndpointFailure),
    /// No packet was received within the idle timeout.
    #[error("the connection timed out: no packet was received within the idle timeout")]
    IdleTimeout,
    /// The handshake took too long.
    #[error("the handshake timed out")]
    HandshakeTimeout,
    /// The network reported the peer's address as unreachable before any packet of the peer arrived (RFC
    /// 9000, section 14.2.1).
    #[error("the server cannot be reached: {0}")]
    Unreachable(Unreachable),
    /// Client: the network that the connection used is down or does not answer, and it could not migrate to another: the
    /// server forbids that, or the handshake was not confirmed (RFC 9000, section 9). A new connection may use the other.
    #[error(
        "the connection's network is down or does not answer, and it cannot migrate to another: {0}"
    )]
    NetworkLost(MigrateError),
    /// The peer sent a stateless reset.
    #[error("the peer reset the connection: it has lost its state")]
    Reset,
}

/// The reason why an endpoint no longer drives its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointFailure {
    /// The task panicked, in a policy or observer of the application, or because of a defect.
    #[error("its task panicked")]
    Panicked,
    /// The socket can no longer receive.
    #[error("its socket failed")]
    Socket,
    /// The runtime ended the task.
    #[error("the runtime ended its task")]
    TaskEnded,
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

/// An event for the endpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum EndpointEvent {
    /// Datagrams with this destination connection ID belong to the connection.
    Issued(ConnectionId),
    /// Datagrams with this destination connection ID no longer belong to the connection.
    Retired(ConnectionId),
    /// A datagram from the peer that ends with these bytes resets the connection.
    ResetTokenAdded([u8; 16]),
    /// A datagram that ends with these bytes no longer resets the connection.
    ResetTokenRemoved([u8; 16]),
    /// The handshake is complete and no longer counts against the limit of handshakes.
    HandshakeDone,
    /// Server: the connection became idle, or is no longer idle; it is not idle when the handshake
    /// completes. See [`ClientLimits::evict_idle`](crate::ClientLimits::evict_idle).
    Idle(bool),
    /// A client whose address is validated resumes a session: poll [`crate::Endpoint::poll_resumed`].
    Resumed,
    /// The connection joins a bundle.
    JoinBundle(Box<JoinBundle>),
    /// A signal for the bundle's engine, for [`crate::Endpoint::coordinate`].
    Bundle(Signal),
    /// The connection is drained and can be removed.
    Drained,
}

/// Events that wait to be polled.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    pub(super) application: VecDeque<Event>,
    pub(super) endpoint: VecDeque<EndpointEvent>,
    /// The idle state last reported to the endpoint.
    pub(super) reported_idle: bool,
}
