//! Which connections belong together, and what their engines tell them.
//!
//! A bundle is named by what its client knows, by where it comes from, and by the name of the server that it
//! asked for: connections to two sites of one process never meet, and neither do two ways to one site.

use std::collections::VecDeque;
use std::net::IpAddr;

use rustc_hash::FxHashMap;
use slab::Slab;

use super::{ConnectionHandle, Endpoint};
use crate::coordination::bundle::{
    Bundle, Directive, JoinBundle, MemberView, MembershipId, Signal,
};
use crate::time::Instant;

/// What connections have in common that belong together: their way, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    id: Option<MembershipId>,
    address: IpAddr,
    server_name: Option<Box<str>>,
}

/// The bundles of an endpoint: none outlives its last connection.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    bundles: Slab<(Key, Bundle<ConnectionHandle>)>,
    by_key: FxHashMap<Key, usize>,
    of: FxHashMap<ConnectionHandle, usize>,
    /// Bundles that ever were.
    count: u64,
    directives: VecDeque<(ConnectionHandle, Directive)>,
}

impl Bundles {
    /// Takes a connection in, out of the bundle that it was in before.
    pub(super) fn join(&mut self, handle: ConnectionHandle, join: JoinBundle) {
        self.leave(handle);
        let key = Key {
            id: join.id,
            address: join.address,
            server_name: join.server_name,
        };
        let place = match self.by_key.get(&key) {
            Some(&place) => place,
            None => {
                let bundle = Bundle::new(self.count, join.config);
                self.count += 1;
                let place = self.bundles.insert((key.clone(), bundle));
                self.by_key.insert(key, place);
                place
            }
        };
        let (_, bundle) = &mut self.bundles[place];
        if let Some(directive) = bundle.join(handle, &join.newcomer) {
            self.of.insert(handle, place);
            self.directives.push_back((handle, directive));
        }
    }

    pub(super) fn leave(&mut self, handle: ConnectionHandle) {
        let Some(place) = self.of.remove(&handle) else {
            return;
        };
        // Handles are used again.
        self.directives.retain(|(member, _)| *member != handle);
        let (_, bundle) = &mut self.bundles[place];
        bundle.leave(handle);
        if bundle.is_empty() {
            let (key, _) = self.bundles.remove(place);
            self.by_key.remove(&key);
        }
    }
}

impl Endpoint {
    /// Takes a [`Signal`] of a member to the engine of its bundle. `view` tells how a connection stands
    /// ([`Connection::member_view`](crate::Connection::member_view)).
    ///
    /// [`Self::poll_directive`] has what follows from it.
    pub fn coordinate(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        signal: Signal,
        view: &mut dyn FnMut(ConnectionHandle) -> Option<MemberView>,
    ) {
        let bundles = &mut self.bundles;
        let Some(&place) = bundles.of.get(&handle) else {
            return;
        };
        let (_, bundle) = &mut bundles.bundles[place];
        let directives = bundle.on_signal(now, handle, signal, view);
        bundles.directives.extend(directives);
    }

    /// What a connection must [`obey`](crate::Connection::obey); poll it after every event of a connection
    /// until there is none.
    pub fn poll_directive(&mut self) -> Option<(ConnectionHandle, Directive)> {
        self.bundles.directives.pop_front()
    }

    /// Bundles that have members.
    pub fn open_bundles(&self) -> usize {
        self.bundles.bundles.len()
    }
}

#[cfg(test)]
mod tests;
