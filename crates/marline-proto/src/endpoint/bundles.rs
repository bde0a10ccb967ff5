//! Membership of connections in bundles, and the directives of their engines.
//!
//! A bundle is identified by the identifier that its client chose, the client's address, and the name of the
//! server: connections to two sites of one process are never in one bundle, nor are connections over two
//! paths to one site.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use rustc_hash::FxHashMap;
use slab::Slab;

use super::{ConnectionHandle, Endpoint};
use crate::coordination::bundle::{
    Bundle, JoinBundle, MemberDirective, MemberView, MembershipId, Signal,
};
use crate::time::Instant;

/// The properties that the connections of one bundle share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    id: Option<MembershipId>,
    address: IpAddr,
    server_name: Option<Box<str>>,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    bundle: Bundle<ConnectionHandle>,
}

/// The bundles of an endpoint; each ends with its last connection.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    entries: Slab<Entry>,
    /// Indices of entries. Clients choose the identifiers: the hash function has a secret.
    by_key: HashMap<Key, usize>,
    of: FxHashMap<ConnectionHandle, usize>,
    /// Number of bundles ever created.
    count: u64,
    directives: VecDeque<MemberDirective<ConnectionHandle>>,
}

impl Bundles {
    /// Adds a connection to its bundle, and removes it from its earlier one.
    pub(super) fn join(&mut self, handle: ConnectionHandle, join: JoinBundle) {
        self.leave(handle);
        let key = Key {
            id: join.id,
            address: join.address,
            server_name: join.server_name,
        };
        let index = match self.by_key.get(&key) {
            Some(&index) => index,
            None => {
                let bundle = Bundle::new(self.count, join.config);
                self.count += 1;
                let index = self.entries.insert(Entry {
                    key: key.clone(),
                    bundle,
                });
                self.by_key.insert(key, index);
                index
            }
        };
        let bundle = &mut self.entries[index].bundle;
        if let Some(directive) = bundle.join(handle, &join.joining) {
            self.of.insert(handle, index);
            self.directives.push_back(MemberDirective {
                member: handle,
                directive,
            });
        }
    }

    pub(super) fn leave(&mut self, handle: ConnectionHandle) {
        let Some(index) = self.of.remove(&handle) else {
            return;
        };
        // Handles are reused: a directive must not reach another connection.
        self.directives.retain(|waiting| waiting.member != handle);
        let bundle = &mut self.entries[index].bundle;
        bundle.leave(handle);
        if bundle.is_empty() {
            let entry = self.entries.remove(index);
            self.by_key.remove(&entry.key);
        }
    }
}

impl Endpoint {
    /// Passes a [`Signal`] of a member to the engine of its bundle. `view` returns the state of a
    /// connection ([`Connection::member_view`](crate::Connection::member_view)).
    ///
    /// [`Self::poll_directive`] returns the resulting directives.
    pub fn coordinate(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        signal: Signal,
        view: &mut dyn FnMut(ConnectionHandle) -> Option<MemberView>,
    ) {
        let bundles = &mut self.bundles;
        let Some(&index) = bundles.of.get(&handle) else {
            return;
        };
        let bundle = &mut bundles.entries[index].bundle;
        let directives = bundle.on_signal(now, handle, signal, view);
        bundles.directives.extend(directives);
    }

    /// The next directive that a connection must [`apply_directive`](crate::Connection::apply_directive); to be polled after every event
    /// of a connection until it returns `None`.
    pub fn poll_directive(&mut self) -> Option<MemberDirective<ConnectionHandle>> {
        self.bundles.directives.pop_front()
    }

    /// Number of bundles with members.
    #[cfg(test)]
    pub(crate) fn open_bundles(&self) -> usize {
        self.bundles.entries.len()
    }
}

#[cfg(test)]
mod tests;
