//! The world as one host sees it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use super::datagram::Datagram;
use super::state::Shared;
use crate::fabric::{Fabric, Node};

/// A host: a runtime for endpoints and tasks. Clones are the same host.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
    node: Node,
    name: Arc<str>,
    addresses: Arc<[Ipv4Addr]>,
}

impl Host {
    pub(super) fn new(
        shared: Arc<Shared>,
        node: Node,
        name: &str,
        addresses: impl Iterator<Item = Ipv4Addr>,
    ) -> Self {
        Self {
            shared,
            node,
            name: name.into(),
            addresses: addresses.collect(),
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Which node of the fabric it is.
    pub fn node(&self) -> Node {
        self.node
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its addresses, one for each interface.
    pub fn addresses(&self) -> &[Ipv4Addr] {
        &self.addresses
    }

    /// `port` at its first address.
    pub fn at(&self, port: u16) -> SocketAddr {
        let first = self.addresses.first().copied();
        SocketAddrV4::new(first.unwrap_or(Ipv4Addr::UNSPECIFIED), port).into()
    }

    /// Looks at the network.
    pub fn fabric<T>(&self, look: impl FnOnce(&Fabric<Datagram>) -> T) -> T {
        look(&self.shared.lock().fabric)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.name)
    }
}
