//! Eviction of idle connections, so that a full server can accept another client.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::{ConnectionHandle, Endpoint};
use crate::config::ServerConfig;
use crate::limits::EVICTED_CONNECTIONS;

/// Evicted connections that are not drained.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// Connections that their owner still has to close.
    due: VecDeque<ConnectionHandle>,
    all: FxHashSet<ConnectionHandle>,
}

/// The place of a new client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A free one.
    Free,
    /// That of an idle connection, which is evicted.
    Of(ConnectionHandle),
}

impl Evictions {
    pub(super) fn on_drained(&mut self, handle: ConnectionHandle) {
        if self.all.remove(&handle) {
            // Handles are reused.
            self.due.retain(|due| *due != handle);
        }
    }
}

impl Endpoint {
    /// A place for another client. Evicted connections do not count, but only a limited number may be
    /// closing at a time.
    pub(super) fn place(&self, server: &ServerConfig, ip: std::net::IpAddr) -> Option<Place> {
        let evicted = self.evictions.all.len();
        if self.entries.len() - evicted < server.max_connections {
            return Some(Place::Free);
        }
        self.evictable_for(ip).map(Place::Of)
    }

    /// The idle connection to evict for another client at `ip`.
    fn evictable_for(&self, ip: std::net::IpAddr) -> Option<ConnectionHandle> {
        let evicted = self.evictions.all.len();
        let may_evict = self.config.clients.evict_idle && evicted < EVICTED_CONNECTIONS;
        may_evict.then(|| self.clients.longest_idle_for(ip))?
    }

    /// Evicts an idle connection for another client at `ip`, whose address is validated, because of a limit outside
    /// this endpoint. Returns whether there was one, which [`poll_evicted`](Self::poll_evicted) returns.
    pub fn evict_idle_for(&mut self, ip: std::net::IpAddr) -> bool {
        let idle = self.evictable_for(ip);
        if let Some(handle) = idle {
            self.evict(handle);
        }
        idle.is_some()
    }

    pub(super) fn evict(&mut self, handle: ConnectionHandle) {
        let entry = self.entries.get_mut(handle.0);
        if let Some(client) = entry.and_then(|entry| entry.client.take()) {
            self.clients.remove(&client);
            self.evictions.all.insert(handle);
            self.evictions.due.push_back(handle);
            self.stats.evicted += 1;
        }
    }

    /// The next idle connection to [evict](crate::Connection::evict) for a new client; to be polled after
    /// every datagram until it returns `None`.
    pub fn poll_evicted(&mut self) -> Option<ConnectionHandle> {
        self.evictions.due.pop_front()
    }
}
