//! The properties of a host.

use std::net::Ipv4Addr;

use crate::fabric::Node;

/// The properties of a host, shared with its sockets.
pub(crate) struct HostInfo {
    /// Node in the fabric.
    pub(crate) node: Node,
    /// Name of the host.
    pub(crate) name: String,
    /// Addresses, one for each interface.
    pub(crate) addresses: Vec<Ipv4Addr>,
}
