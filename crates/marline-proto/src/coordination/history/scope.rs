//! The scope within which connections learn from each other.

use std::net::{IpAddr, SocketAddr};

use crate::prefix::Prefix;

/// The longest usable server name, in bytes: that of the DNS (RFC 1035, section 2.3.4). A longer one is
/// treated as absent.
const MAX_SERVER_NAME: usize = 255;

/// The connections that share a record, by the addresses of their peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathScope {
    /// Those to peers in one network, which often share a bottleneck.
    Prefix {
        /// Prefix length of a network's IPv4 addresses, in bits.
        v4: u8,
        /// Prefix length of a network's IPv6 addresses, in bits.
        v6: u8,
    },
    /// Those to one address.
    Address,
    /// All connections.
    Global,
}

impl Default for PathScope {
    fn default() -> Self {
        Self::Prefix { v4: 24, v6: 48 }
    }
}

impl PathScope {
    /// The key of a connection to `peer`; `server_name` is part of it if it is given.
    pub fn key(&self, peer: SocketAddr, server_name: Option<&str>) -> PathKey {
        let address = peer.ip().to_canonical();
        let network = match (self, address) {
            (Self::Prefix { v4, .. }, IpAddr::V4(_)) => Some(Prefix::new(address, *v4)),
            (Self::Prefix { v6, .. }, IpAddr::V6(_)) => Some(Prefix::new(address, *v6)),
            (Self::Address, _) => Some(Prefix::new(address, u8::MAX)),
            (Self::Global, _) => None,
        };
        let server_name = server_name
            .filter(|name| name.len() <= MAX_SERVER_NAME)
            .map(|name| name.to_ascii_lowercase().into());
        PathKey {
            network,
            server_name,
        }
    }
}

/// The key of a record: connections with equal keys learn from each other.
///
/// A peer can choose the server name freely, but not the network: only validated addresses get a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathKey {
    /// The peer's network; `None` is all of them.
    pub network: Option<Prefix>,
    /// The server's name, in lower case; `None` is all of them.
    pub server_name: Option<Box<str>>,
}

#[cfg(test)]
mod tests;
