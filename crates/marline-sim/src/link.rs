//! A link of a running simulation.

use std::fmt;
use std::sync::Arc;

use marline_link::Packet;

use crate::datagram::Datagram;
use crate::fabric::{MediumId, Node};
use crate::host::Host;
use crate::state::Shared;

/// A link of a [`Sim`](crate::Sim), whose faults can be changed while tasks run. Clones are the same link.
#[derive(Clone)]
pub struct SimLink {
    shared: Arc<Shared>,
    medium: MediumId,
}

impl SimLink {
    pub(crate) const fn new(shared: Arc<Shared>, medium: MediumId) -> Self {
        Self { shared, medium }
    }

    /// Loses all packets from now on, including those in flight. Hosts are not notified.
    pub fn cut(&self) {
        self.shared.lock().fabric.cut(self.medium);
    }

    /// Restores the link after [`cut`](Self::cut).
    pub fn restore(&self) {
        self.shared.lock().fabric.restore(self.medium);
    }

    /// Loses packets for which `filter` is true from now on, at their arrival; its first argument is the node that
    /// sent the packet over this link. Replaces an earlier filter.
    pub fn lose_if(&self, filter: impl FnMut(Node, &Packet<Datagram>) -> bool + Send + 'static) {
        let fabric = &mut self.shared.lock().fabric;
        fabric.set_filter(self.medium, Box::new(filter));
    }

    /// Bytes of IP packets from `host` that arrived at the other end.
    pub fn arrived_bytes(&self, host: &Host) -> u64 {
        let fabric = &self.shared.lock().fabric;
        let traffic = fabric.traffic(self.medium, host.node());
        traffic.map_or(0, |traffic| traffic.arrived_bytes)
    }
}

impl fmt::Debug for SimLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimLink").field(&self.medium).finish()
    }
}
