//! The admission of connections over TCP, and the choice of those that make room for them.

mod networks;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::Prefix;
use tokio::sync::Notify;

use self::networks::{Entry, Networks};
use super::progress::Progress;
use super::shares::Shares;
use crate::runtime::RuntimeHandle;

/// The open connections over TCP. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Admission(Arc<Mutex<State>>);

/// The largest numbers of open connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    /// In total.
    pub(super) total: usize,
    /// From one address.
    pub(super) per_address: usize,
    /// From one network.
    pub(super) per_prefix: usize,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    /// A client.
    Client(IpAddr),
    /// A trusted proxy, whose connections are those of many clients.
    Proxy(IpAddr),
}

impl Peer {
    fn address(self) -> IpAddr {
        match self {
            Self::Client(address) | Self::Proxy(address) => address,
        }
    }
}

impl ConnectionLimits {
    /// The limits that hold for `peer`.
    fn of(self, peer: Peer) -> Self {
        match peer {
            Peer::Client(_) => self,
            Peer::Proxy(_) => Self {
                per_address: usize::MAX,
                per_prefix: usize::MAX,
                ..self
            },
        }
    }
}

#[derive(Debug)]
struct State {
    limits: ConnectionLimits,
    runtime: RuntimeHandle,
    shares: Shares,
    open: Networks,
    next: u64,
}

impl Admission {
    pub(super) fn new(limits: ConnectionLimits, runtime: &RuntimeHandle) -> Self {
        Self(Arc::new(Mutex::new(State {
            limits,
            shares: Shares::new(limits.total as u64),
            runtime: runtime.clone(),
            open: Networks::default(),
            next: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a connection from `peer`; `None` if too many are open, and none of them is idle.
    ///
    /// If its address or network has reached its limit, its longest idle connection is closed. A network may have as many
    /// as are left for others, so that none can use up all. If several together have used up all, a network with fewer than
    /// its entitlement gets the place of the longest idle connection of the network with the most.
    pub(super) fn admit(&self, peer: Peer, progress: &Arc<Progress>) -> Option<Admitted> {
        let host = Prefix::of_host(peer.address());
        let prefix = Prefix::of_network(peer.address());
        let mut state = self.state();
        let limits = state.limits.of(peer);
        if state.has_too_many(prefix, Some(host), limits) && !state.evict(prefix, Some(host)) {
            return None;
        }
        if state.has_too_many(prefix, None, limits)
            && !state.evict(prefix, None)
            && !state.evict_for_entitled(prefix, limits)
        {
            return None;
        }
        if !state.shares.take(prefix, 1) {
            return None;
        }
        state.next += 1;
        let id = state.next;
        let evicted = Arc::new(Notify::new());
        let entry = Entry {
            host,
            progress: Arc::clone(progress),
            evicted: Arc::clone(&evicted),
        };
        let now = state.runtime.now();
        state.open.insert(prefix, id, entry, now);
        drop(state);
        Some(Admitted {
            admission: self.clone(),
            prefix,
            id,
            evicted,
        })
    }

    /// Connections that are open.
    pub(super) fn open(&self) -> u64 {
        self.state().shares.used()
    }

    /// Closes the longest idle connection of the network of `address`, or of the network with more than that and the most,
    /// for a connection that is not over TCP. Returns whether there was one.
    pub(super) fn evict_idle_for(&self, address: IpAddr) -> bool {
        let prefix = Prefix::of_network(address);
        let mut state = self.state();
        state.evict(prefix, None) || state.evict_crowded(prefix)
    }
}

impl State {
    /// Whether one more connection would be too many, from `host` or else from its network.
    fn has_too_many(&self, prefix: Prefix, host: Option<Prefix>, limits: ConnectionLimits) -> bool {
        let open = self.open.count(prefix, host);
        match host {
            Some(_) => open >= limits.per_address,
            None => open >= limits.per_prefix || self.shares.available(prefix) == 0,
        }
    }

    /// Closes the longest idle connection of `host`, or else of its network. Returns whether there was one.
    fn evict(&mut self, prefix: Prefix, host: Option<Prefix>) -> bool {
        let now = self.runtime.now();
        let Some(id) = self.open.longest_idle(prefix, host, now) else {
            return false;
        };
        if let Some(entry) = self.remove(prefix, id) {
            entry.evicted.notify_one();
        }
        true
    }

    /// Closes the longest idle connection of the network with the most, if `prefix` has fewer than its entitlement, and
    /// that network more. Returns whether there was one.
    fn evict_for_entitled(&mut self, prefix: Prefix, limits: ConnectionLimits) -> bool {
        if self.open.count(prefix, None) >= limits.per_prefix {
            return false;
        }
        if self.shares.lacking(prefix) == 0 {
            return false;
        }
        if self.shares.available_to_waiting(prefix) > 0 {
            return true;
        }
        let shares = &self.shares;
        let is_greedy = |network, _| shares.is_greedy(network, prefix);
        let heaviest = self.open.most_crowded(self.runtime.now(), is_greedy);
        heaviest.is_some_and(|network| self.evict(network, None))
    }

    /// Closes the longest idle connection of the network with the most, if it has more than `prefix` and than one.
    fn evict_crowded(&mut self, prefix: Prefix) -> bool {
        let own = self.open.count(prefix, None).max(1);
        let has_more = |_, connections| connections > own;
        let crowded = self.open.most_crowded(self.runtime.now(), has_more);
        crowded.is_some_and(|network| self.evict(network, None))
    }

    fn remove(&mut self, prefix: Prefix, id: u64) -> Option<Entry> {
        let entry = self.open.remove(prefix, id, self.runtime.now())?;
        self.shares.give_back(prefix, 1);
        Some(entry)
    }
}

/// The place of an open connection, which is freed on drop.
#[derive(Debug)]
pub(super) struct Admitted {
    admission: Admission,
    prefix: Prefix,
    id: u64,
    evicted: Arc<Notify>,
}

impl Admitted {
    /// Completes when the connection has to make room for another.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let removed = self.admission.state().remove(self.prefix, self.id);
        drop(removed);
    }
}

#[cfg(test)]
mod tests;
