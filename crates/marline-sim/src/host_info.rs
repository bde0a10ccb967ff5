//! The properties of a host.

use std::net::Ipv4Addr;

use crate::fabric::Node;

/// The properties of a host, shared with its sockets.
pub(crate) struct HostInfo {
    /// Its node in the fabric.
    pub(crate) node: Node,
    /// Its name.
    pub(crate) name: String,
    /// Its addresses, one for each interface.
    pub(crate) addresses: Vec<Ipv4Addr>,
}
