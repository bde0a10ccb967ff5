//! States and parameters of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use marline_wire::params::TransportParameters;
use marline_wire::{ConnectionId, ErrorCode, PathId};

use super::Initiator;

/// The connection was attempted or accepted.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStarted {
    /// Local address, if known.
    pub local: Option<SocketAddr>,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// First connection ID chosen by this end.
    pub local_cid: ConnectionId,
    /// First connection ID in packets to the peer.
    pub remote_cid: ConnectionId,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// The first Initial was sent or received.
    Attempted,
    /// The peer's address is validated (RFC 9000, section 8.1).
    PeerValidated,
    /// The first Handshake packet was sent or received.
    HandshakeStarted,
    /// The server may send 1-RTT data; the handshake is not complete.
    EarlyWrite,
    /// Both Finished messages are verified (RFC 9001, section 4.1.1).
    HandshakeComplete,
    /// HANDSHAKE_DONE was sent or received (RFC 9001, section 4.1.2).
    HandshakeConfirmed,
    /// CONNECTION_CLOSE was sent (RFC 9000, section 10.2.1).
    Closing,
    /// CONNECTION_CLOSE was received (RFC 9000, section 10.2.2).
    Draining,
    /// The state of the connection was discarded.
    Closed,
}

/// The connection entered another state.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStateUpdated {
    /// Previous state, if there was one.
    pub old: Option<ConnectionState>,
    /// New state.
    pub new: ConnectionState,
}

/// The error with which a connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedWith {
    /// No error code was exchanged: a timeout or a stateless reset.
    Nothing,
    /// A transport error code.
    Transport(ErrorCode),
    /// The application's error code.
    Application(u64),
}

/// The cause of a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseTrigger {
    /// Idle timeout.
    IdleTimeout,
    /// Closed by an application.
    Application,
    /// A protocol violation or another transport error.
    Error,
    /// There is no common version.
    VersionMismatch,
    /// The peer has lost the state of the connection.
    StatelessReset,
    /// Closed without notifying the peer.
    Aborted,
    /// Not known.
    Unspecified,
}

/// The connection closed.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionClosed<'a> {
    /// End that closed it.
    pub initiator: Initiator,
    /// Error code.
    pub error: ClosedWith,
    /// Reason phrase, for humans; the peer can send any text.
    pub reason: &'a str,
    /// Cause of the close.
    pub trigger: CloseTrigger,
}

/// A change of the connection ID in use.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionIdUpdated {
    /// Path on which it is used, if known.
    pub path: Option<PathId>,
    /// End that chose it: `Remote` for the peer's ID in packets of this end, `Local` for this end's ID in
    /// packets of the peer.
    pub initiator: Initiator,
    /// Previous ID.
    pub old: Option<ConnectionId>,
    /// New ID.
    pub new: Option<ConnectionId>,
}

/// Known information about QUIC versions (RFC 9000, section 6). Empty lists are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionInformation<'a> {
    /// Versions supported by the server.
    pub server: &'a [u32],
    /// Versions supported by the client.
    pub client: &'a [u32],
    /// Negotiated version.
    pub chosen: Option<u32>,
}

/// Known information about the application protocol (RFC 7301). Empty lists are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlpnInformation<'a> {
    /// Protocols supported by the server.
    pub server: &'a [&'a [u8]],
    /// Protocols supported by the client.
    pub client: &'a [&'a [u8]],
    /// Negotiated protocol.
    pub chosen: Option<&'a [u8]>,
}

/// One end's transport parameters (RFC 9000, section 18).
#[derive(Clone, Copy, Debug)]
pub struct ParametersSet<'a> {
    /// End that sets them.
    pub initiator: Initiator,
    /// The cipher suite, once chosen.
    pub tls_cipher: Option<&'a str>,
    /// The parameters.
    pub parameters: &'a TransportParameters,
}

/// A newly requested acknowledgment frequency (draft-ietf-quic-ack-frequency, section 4): the first ACK_FREQUENCY frame
/// with the request was sent, or one received that is newer than all before.
#[derive(Clone, Copy, Debug)]
pub struct AckFrequencyUpdated {
    /// Path of the packet with the frame; the request applies to all paths.
    pub path: PathId,
    /// End that requested it.
    pub initiator: Initiator,
    /// Ack-eliciting threshold in packets.
    pub ack_eliciting_threshold: u64,
    /// Maximum delay of an acknowledgment.
    pub requested_max_ack_delay: Duration,
    /// Reordering threshold for immediate acknowledgments; 0 disables them.
    pub reordering_threshold: u64,
}
