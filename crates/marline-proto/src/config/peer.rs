//! Settings of servers and clients.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use marline_wire::{ConnectionId, Side, Version};

use super::{RetryPolicy, TransportConfig};
use crate::address_tokens::AddressTokens;
use crate::coordination::bundle::Membership;
use crate::handshake::{TlsClientConfig, TlsServerConfig, Versions};
use crate::observe::Observer;

/// A connection for which an observer is made.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo {
    /// Role of this end.
    pub side: Side,
    /// The client's first destination connection ID, which names the connection in logs.
    pub original_destination: ConnectionId,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// Creates the observer of a new connection; `None` for none.
pub type MakeObserver = Arc<dyn Fn(&ConnectionInfo) -> Option<Box<dyn Observer>> + Send + Sync>;

/// Settings of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Configuration of its connections.
    pub transport: Arc<TransportConfig>,
    /// Certificates and TLS settings, including whether 0-RTT is accepted.
    pub tls: TlsServerConfig,
    /// Condition for address validation before state is kept.
    pub retry: RetryPolicy,
    /// Whether clients receive a token that validates their address in later connections.
    pub address_tokens: bool,
    /// Whether clients may migrate to another address. NAT rebinding is always followed.
    pub migration: bool,
    /// Maximum number of handshakes and connections; more are refused.
    pub max_connections: usize,
    /// Preferred address of this server (RFC 9000, section 9.6).
    pub preferred_address: Option<SocketAddr>,
    /// Versions that clients may use.
    pub versions: Versions,
    /// Version to which connections are changed without another round trip, if the client began with another
    /// one and offers it (RFC 9368, section 2.3). A client that sends 0-RTT data keeps its version, on which
    /// the keys of this data depend.
    ///
    /// By default each client keeps its own: a client that wants version 2 can begin with it, and a network that
    /// drops it does not break other clients.
    pub preferred_version: Option<Version>,
    /// Creates observers.
    pub observer: Option<MakeObserver>,
}

impl ServerConfig {
    /// Default settings with `tls`.
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
    /// Configuration of its connections.
    pub transport: Arc<TransportConfig>,
    /// Trust anchors, TLS settings and sessions to resume.
    pub tls: TlsClientConfig,
    /// Address tokens and versions of earlier connections.
    pub tokens: Arc<AddressTokens>,
    /// Version of the first packet to an unknown server; a server whose earlier connections used another of
    /// [`Self::versions`] gets that one. A number that the server does not support makes it send Version Negotiation.
    ///
    /// It is 1 by default, which most servers support (RFC 9368, section 2.5).
    pub version: u32,
    /// Supported versions by preference: those to which the server may change, and those tried after a Version
    /// Negotiation packet.
    pub versions: Versions,
    /// The bundle of its connections, if any.
    pub bundle: Option<Membership>,
    /// Creates observers.
    pub observer: Option<MakeObserver>,
}

impl ClientConfig {
    /// Default settings with `tls`.
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
