//! Settings of servers and clients.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use marline_wire::{ConnectionId, Side, Version};

use super::{RetryPolicy, TransportConfig, Versions};
use crate::address_tokens::AddressTokens;
use crate::coordination::bundle::Membership;
use crate::handshake::{TlsClientConfig, TlsServerConfig};
use crate::observe::Observer;

/// A connection for which an observer is made.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo {
    /// Which end we are.
    pub side: Side,
    /// The client's first destination connection ID: the name of the connection in logs.
    pub original_destination: ConnectionId,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// Makes the observer of a new connection, if it shall have one.
pub type MakeObserver = Arc<dyn Fn(&ConnectionInfo) -> Option<Box<dyn Observer>> + Send + Sync>;

/// Settings of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// How its connections behave.
    pub transport: Arc<TransportConfig>,
    /// Certificates and TLS settings; they also say whether 0-RTT is accepted.
    pub tls: TlsServerConfig,
    /// When to ask for proof of the client's address.
    pub retry: RetryPolicy,
    /// Whether clients get a token that validates their address the next time.
    pub address_tokens: bool,
    /// Whether clients may move to another address on purpose. A changed NAT binding is always
    /// followed.
    pub migration: bool,
    /// Handshakes and connections at once; more are refused.
    pub max_connections: usize,
    /// Another address of this server that clients should move to (RFC 9000, section 9.6).
    pub preferred_address: Option<SocketAddr>,
    /// The versions that clients may use.
    pub versions: Versions,
    /// The version that connections change to, without another round trip, if the client began with another
    /// one and offers it (RFC 9368, section 2.3). A client that sends 0-RTT data keeps its version, on which
    /// the keys of this data depend.
    ///
    /// By default each client keeps its own (quic-go never changes a version, aioquic only to one that the client
    /// prefers): who wants version 2 can begin with it, and a path that drops it does not break the others.
    pub preferred_version: Option<Version>,
    /// Makes observers.
    pub observer: Option<MakeObserver>,
}

impl ServerConfig {
    /// Defaults around `tls`.
    pub fn new(tls: TlsServerConfig) -> Self {
        Self {
            transport: Arc::default(),
            tls,
            retry: RetryPolicy::default(),
            address_tokens: true,
            migration: true,
            max_connections: 65_536,
            preferred_address: None,
            versions: Versions::default(),
            preferred_version: None,
            observer: None,
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("transport", &self.transport)
            .field("retry", &self.retry)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

/// Settings of a client's connections.
#[derive(Clone)]
pub struct ClientConfig {
    /// How its connections behave.
    pub transport: Arc<TransportConfig>,
    /// Trust anchors and TLS settings, and the sessions to resume.
    pub tls: TlsClientConfig,
    /// Address tokens that earlier connections brought, and the versions that they used.
    pub tokens: Arc<AddressTokens>,
    /// The version of the first packet to a server that is not known; one whose earlier connections used another
    /// of [`Self::versions`] gets that. A number that the server does not know makes it negotiate.
    ///
    /// It is 1 by default, which the most servers know (RFC 9368, section 2.5).
    pub version: u32,
    /// The versions that the connection may have, by preference: those that the server may change to, and those to
    /// begin again with after a Version Negotiation packet.
    pub versions: Versions,
    /// The bundle that its connections belong to, if they belong together.
    pub bundle: Option<Membership>,
    /// Makes observers.
    pub observer: Option<MakeObserver>,
}

impl ClientConfig {
    /// Defaults around `tls`.
    pub fn new(tls: TlsClientConfig) -> Self {
        Self {
            transport: Arc::default(),
            tls,
            tokens: Arc::default(),
            version: marline_wire::packet::VERSION_1,
            versions: Versions::default(),
            bundle: None,
            observer: None,
        }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("transport", &self.transport)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
