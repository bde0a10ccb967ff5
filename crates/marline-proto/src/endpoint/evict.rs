//! Eviction of idle connections, so that a full server can accept another client.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Endpoint;
use super::clients::IdleClient;
use super::group::{GroupState, Location};
use crate::config::{ClientLimits, ServerConfig};
use crate::limits::EVICTED_CONNECTIONS;

/// Evicted connections that are not drained.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    all: FxHashSet<Location>,
}

/// The place of a new client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A free one.
    Free,
    /// That of an idle connection, which has to be evicted.
    OfAnother,
}

impl Evictions {
    pub(super) fn on_drained(&mut self, at: Location) {
        self.all.remove(&at);
    }
}

impl GroupState {
    /// A place for another client. Evicted connections do not count, but only a limited number may be
    /// closing at a time.
    pub(super) fn place(
        &self,
        limits: &ClientLimits,
        server: &ServerConfig,
        ip: IpAddr,
    ) -> Option<Place> {
        if self.connections - self.evictions.all.len() < server.max_connections {
            return Some(Place::Free);
        }
        self.evictable_for(limits, ip).map(|_| Place::OfAnother)
    }

    /// The idle connection to evict for another client at `ip`.
    fn evictable_for(&self, limits: &ClientLimits, ip: IpAddr) -> Option<IdleClient> {
        let may_evict = limits.evict_idle && self.evictions.all.len() < EVICTED_CONNECTIONS;
        may_evict.then(|| self.clients.longest_idle_for(ip))?
    }
}

impl Endpoint {
    /// Evicts an idle connection for another client at `ip`, whose address is validated, because of a limit outside
    /// this endpoint. Returns whether there was one, which [`poll_evicted`](Self::poll_evicted) of the endpoint that has it
    /// returns.
    pub fn evict_idle_for(&mut self, ip: IpAddr) -> bool {
        let group = Arc::clone(&self.group);
        let mut state = group.lock();
        let Some(idle) = state.evictable_for(&self.config.clients, ip) else {
            return false;
        };
        state.clients.remove(idle.id);
        state.evictions.all.insert(idle.at);
        self.order_eviction(&mut state, idle.at);
        self.stats.evicted += 1;
        true
    }
}
