//! How much of a server one client may take.

/// How many connections and handshakes a server keeps for clients of one address and of one network, by the
/// address from which a client connected.
///
/// Clients of one IPv4 address or one IPv6 /64 count as one address; a prefix is an IPv4 /24 or an IPv6 /48. Many
/// clients share an address behind a NAT, so that the defaults are far above what one of them needs.
///
/// A client beyond a limit whose address is not validated gets a Retry packet, unless the [`RetryPolicy`] is
/// `Never`; one whose address is validated is closed with CONNECTION_REFUSED. Handshakes from addresses that are not
/// validated do not count against clients whose address is, so that forged source addresses refuse nobody.
///
/// [`RetryPolicy`]: super::RetryPolicy
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections of one address.
    pub max_connections_per_address: usize,
    /// Connections of one prefix.
    pub max_connections_per_prefix: usize,
    /// Handshakes in progress of one address.
    pub max_handshakes_per_address: usize,
    /// Handshakes in progress of one prefix.
    pub max_handshakes_per_prefix: usize,
    /// Whether a server with [`max_connections`](super::ServerConfig::max_connections) makes place for a validated
    /// client: of those that have been idle longest, it closes one of the same address, of the same prefix, or of
    /// the prefix with most connections. Idle is a connection of which the client has no bidirectional stream open,
    /// and to which nothing is to be delivered.
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
