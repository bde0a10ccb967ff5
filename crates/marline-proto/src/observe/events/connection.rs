//! States and parameters of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use marline_wire::params::TransportParameters;
use marline_wire::{ConnectionId, ErrorCode, PathId};

use super::Initiator;

/// The connection was attempted or accepted.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStarted {
    /// Address here, if known.
    pub local: Option<SocketAddr>,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// First connection ID that this end chose for itself.
    pub local_cid: ConnectionId,
    /// First connection ID that packets to the peer carry.
    pub remote_cid: ConnectionId,
}

/// States of a connection.
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
    /// Its state is discarded.
    Closed,
}

/// The connection entered another state.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStateUpdated {
    /// The state before, if there was one.
    pub old: Option<ConnectionState>,
    /// The state now.
    pub new: ConnectionState,
}

/// The error a connection closed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedWith {
    /// No error code was exchanged: a timeout or a stateless reset.
    Nothing,
    /// A transport error code.
    Transport(ErrorCode),
    /// The application's error code.
    Application(u64),
}

/// What made a connection close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseTrigger {
    /// Idle timeout.
    IdleTimeout,
    /// An application closed it.
    Application,
    /// A protocol violation or another transport error.
    Error,
    /// The ends have no version in common.
    VersionMismatch,
    /// The peer has lost the state of the connection.
    StatelessReset,
    /// It was closed without notifying the peer.
    Aborted,
    /// Not known.
    Unspecified,
}

/// The connection closed.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionClosed<'a> {
    /// Who closed it.
    pub initiator: Initiator,
    /// With which error.
    pub error: ClosedWith,
    /// The reason phrase for people; the peer can send any text.
    pub reason: &'a str,
    /// What made it close.
    pub trigger: CloseTrigger,
}

/// Another connection ID is in use.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionIdUpdated {
    /// The path it is used on, if known.
    pub path: Option<PathId>,
    /// Who chose it: `Remote` if packets of this end carry another ID of the peer, `Local` if packets of the
    /// peer carry another ID of this end.
    pub initiator: Initiator,
    /// The ID before.
    pub old: Option<ConnectionId>,
    /// The ID now.
    pub new: Option<ConnectionId>,
}

/// What is known about QUIC versions (RFC 9000, section 6). Empty lists are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionInformation<'a> {
    /// What the server supports.
    pub server: &'a [u32],
    /// What the client supports.
    pub client: &'a [u32],
    /// What they agreed on.
    pub chosen: Option<u32>,
}

/// What is known about the application protocol (RFC 7301). Empty lists are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlpnInformation<'a> {
    /// What the server supports.
    pub server: &'a [&'a [u8]],
    /// What the client supports.
    pub client: &'a [&'a [u8]],
    /// What they agreed on.
    pub chosen: Option<&'a [u8]>,
}

/// One end's transport parameters (RFC 9000, section 18).
#[derive(Clone, Copy, Debug)]
pub struct ParametersSet<'a> {
    /// Whose they are.
    pub initiator: Initiator,
    /// The cipher suite, once chosen.
    pub tls_cipher: Option<&'a str>,
    /// The parameters.
    pub parameters: &'a TransportParameters,
}

/// Another frequency of acknowledgments was requested (draft-ietf-quic-ack-frequency, section 4): the first ACK_FREQUENCY
/// frame with the request was sent, or one received that is newer than all before.
#[derive(Clone, Copy, Debug)]
pub struct AckFrequencyUpdated {
    /// The path of the packet with the frame; the request concerns all paths.
    pub path: PathId,
    /// Which end requested it.
    pub initiator: Initiator,
    /// Ack-eliciting packets that may go unacknowledged.
    pub ack_eliciting_threshold: u64,
    /// Longest delay of an acknowledgement.
    pub requested_max_ack_delay: Duration,
    /// Reordering at which to acknowledge at once; 0 turns that off.
    pub reordering_threshold: u64,
}
