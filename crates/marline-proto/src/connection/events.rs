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
    /// The server rejected 0-RTT data: what was written is sent again.
    ZeroRttRejected,
    /// An event of a stream.
    Stream(StreamEvent),
    /// Datagrams can be read, where there were none.
    DatagramReceived,
    /// Datagrams can be sent again.
    DatagramsUnblocked,
    /// The address of the peer or of this end has changed.
    PathChanged,
    /// A path was opened; its validation begins.
    PathOpened(PathId),
    /// A path carries data from now on.
    PathValidated(PathId),
    /// A path is abandoned.
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
    /// Client: a path can be opened now. Emitted once after [`Connection::open_path`] failed for want of a
    /// path ID, of connection IDs, or because the handshake was not confirmed.
    ///
    /// [`Connection::open_path`]: crate::Connection::open_path
    PathsAvailable,
    /// The connection is over; the last event.
    Closed(ConnectionError),
}

/// What an ICMP message "destination unreachable" calls unreachable (RFC 792; RFC 4443, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// There is no route to the network.
    #[error("there is no route to its network")]
    Network,
    /// The host does not answer in its network.
    #[error("its network cannot reach the host")]
    Host,
    /// No program of the host uses the UDP port.
    #[error("its UDP port is closed")]
    Port,
}

/// Why a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// No version of QUIC in common.
    #[error("the server does not speak QUIC version 1")]
    VersionMismatch,
    /// This end closed the connection because of a protocol violation or an internal error.
    #[error("the connection failed: {0}")]
    Transport(TransportError),
    /// The peer closed the connection with a transport error.
    #[error("the peer closed the connection: {code}{}", explain(.reason))]
    PeerTransport {
        /// Its error code.
        code: ErrorCode,
        /// Type of the frame that caused it; 0 if unknown.
        frame_type: u64,
        /// Its explanation, not trusted.
        reason: String,
    },
    /// The peer's application closed the connection.
    #[error("the peer's application closed the connection: code {code}{}", explain_bytes(.reason))]
    PeerApplication {
        /// The application's code.
        code: u64,
        /// Its explanation, not trusted.
        reason: Bytes,
    },
    /// This end closed the connection because it was idle, and its endpoint was full.
    #[error("the connection was closed here: it was idle, and another client needed its place")]
    Evicted,
    /// The application of this end closed the connection.
    #[error("the connection was closed here")]
    LocallyClosed,
    /// The endpoint of this end has failed, and with it all of its connections.
    #[error("the endpoint failed: {0}")]
    EndpointFailed(EndpointFailure),
    /// No packet was received within the idle timeout.
    #[error("the connection timed out: the peer sent nothing for too long")]
    IdleTimeout,
    /// The handshake took too long.
    #[error("the handshake timed out")]
    HandshakeTimeout,
    /// The network reported the peer's address as unreachable before anything of the peer arrived (RFC 9000,
    /// section 14.2.1).
    #[error("the server cannot be reached: {0}")]
    Unreachable(Unreachable),
    /// The peer sent a stateless reset.
    #[error("the peer reset the connection: it has no state for it any more")]
    Reset,
}

/// Why an endpoint no longer drives its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointFailure {
    /// Its task panicked: a policy or an observer of the application, or a defect.
    #[error("its task panicked")]
    Panicked,
    /// Its socket cannot receive any more.
    #[error("its socket failed")]
    Socket,
    /// The runtime ended its task.
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
    /// Such a datagram no longer does.
    ResetTokenRemoved([u8; 16]),
    /// The handshake is complete: it no longer counts against the limit of handshakes.
    HandshakeDone,
    /// Server: whether the connection is idle from now on; it is not when the handshake completes. See
    /// [`ClientLimits::evict_idle`](crate::ClientLimits::evict_idle).
    Idle(bool),
    /// A client whose address is validated resumes a session: poll [`crate::Endpoint::poll_resumed`].
    Resumed,
    /// The connection is to join a bundle.
    JoinBundle(Box<JoinBundle>),
    /// A signal for the engine of its bundle, for [`crate::Endpoint::coordinate`].
    Bundle(Signal),
    /// The connection is drained and can be removed.
    Drained,
}

/// Events that wait to be polled.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    pub(super) application: VecDeque<Event>,
    pub(super) endpoint: VecDeque<EndpointEvent>,
    /// What the endpoint knows: whether the connection is idle.
    pub(super) reported_idle: bool,
}
