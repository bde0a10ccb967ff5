//! What paths between the same addresses need not find out twice.

use crate::connection::Connection;
use crate::connection::slots::Slot;

impl Connection {
    /// Whether it is up to this path to search for the datagram size: the first of its 4-tuple does.
    pub(in crate::connection) fn searches_mtu(&self, at: Slot) -> bool {
        self.paths.is_single() || self.paths.beside(at).all(|other| other > at)
    }

    /// If the datagram size of a path has changed, it has for those beside it.
    pub(in crate::connection) fn share_mtu(&mut self, at: Slot) {
        if self.paths.is_single() {
            return;
        }
        let size = self.paths[at].tuples.active.mtu.current();
        for other in self.paths.slots() {
            let differs = self.paths[other].tuples.active.mtu.current() != size;
            if differs && self.paths.are_beside(at, other) {
                let found = self.paths[at].tuples.active.mtu.clone();
                let path = &mut self.paths[other];
                path.tuples.active.mtu.adopt(&found);
                path.recovery.on_mtu(path.tuples.active.mtu.current());
            }
        }
    }
}
