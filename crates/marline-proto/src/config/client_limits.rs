//! Limits on one client's use of a server.

/// Limits on the connections and handshakes that a server keeps for clients of one address and of one
/// network, by the address from which a client connected.
///
/// Clients of one IPv4 address or one IPv6 /64 count as one address; a prefix is an IPv4 /24 or an IPv6 /48. Many
/// clients share an address behind a NAT, so the defaults are far above the needs of one client.
///
/// A client beyond a limit whose address is not validated gets a Retry packet, unless the [`RetryPolicy`] is `Never`;
/// one whose address is validated is closed with CONNECTION_REFUSED. Handshakes from addresses that are not validated
/// do not count against clients whose address is: spoofed source addresses cannot lock out validated clients.
///
/// [`RetryPolicy`]: super::RetryPolicy
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Maximum number of connections per address.
    pub max_connections_per_address: usize,
    /// Maximum number of connections per prefix.
    pub max_connections_per_prefix: usize,
    /// Maximum number of handshakes in progress per address.
    pub max_handshakes_per_address: usize,
    /// Maximum number of handshakes in progress per prefix.
    pub max_handshakes_per_prefix: usize,
    /// Whether a full server (see [`max_connections`](super::ServerConfig::max_connections)) closes an idle
    /// connection to admit a validated client: the one that has been idle longest of the same address, of the same
    /// prefix, or of the prefix with most connections. A connection is idle if the client has no bidirectional
    /// stream open and nothing is to be delivered to it.
    pub evict_idle: bool,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max_connections_per_address: 1000,
            max_connections_per_prefix: 4000,
            max_handshakes_per_address: 250,
            max_handshakes_per_prefix: 1000,
            evict_idle: true,
        }
    }
}
