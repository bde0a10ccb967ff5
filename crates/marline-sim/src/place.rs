//! Which host something belongs to.

use std::net::Ipv4Addr;

use crate::fabric::Node;

/// What a host and its sockets know of the host.
pub(crate) struct Place {
    /// Its node in the fabric.
    pub(crate) node: Node,
    /// Its name.
    pub(crate) name: String,
    /// Its addresses, one for each interface.
    pub(crate) addresses: Vec<Ipv4Addr>,
}
