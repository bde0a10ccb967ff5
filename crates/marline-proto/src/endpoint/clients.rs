//! Counts of a server's connections per client network, and the order of idle ones.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::group::Location;
use super::stats::Refusal;
use crate::config::ClientLimits;
use crate::limits::IDLE_CANDIDATES;
use crate::prefix::Prefix;

/// Progress of a client's handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeProgress {
    /// The handshake is in progress, and the address may be spoofed.
    Unvalidated,
    /// The handshake is in progress from a validated address.
    Validated,
    /// The handshake is complete.
    Connected,
}

/// Identifies a counted connection of a client; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientId(u64);

/// A counted connection of a client.
#[derive(Debug)]
struct Client {
    ip: IpAddr,
    progress: HandshakeProgress,
    /// Its position among the idle connections.
    idle: Option<u64>,
}

/// Connections of one address or one prefix.
#[derive(Debug, Default)]
struct Counts {
    unvalidated: usize,
    validated: usize,
    connected: usize,
}

/// An idle connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleClient {
    pub(super) id: ClientId,
    pub(super) at: Location,
    ip: IpAddr,
}

/// Suitability of an idle connection for eviction, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suitability {
    /// Its prefix has this many connections, more than that of the new client.
    Crowded(usize),
    SamePrefix,
    SameAddress,
}

/// Client connections by address and prefix, with an entry for each that has any.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// By their numbers. One that is evicted is no longer here, although its worker does not know yet.
    all: FxHashMap<ClientId, Client>,
    /// The number of the next one.
    next: u64,
    // Clients choose their addresses within an IPv6 prefix: the hash function is keyed.
    /// By host.
    hosts: HashMap<Prefix, Counts>,
    /// By network.
    networks: HashMap<Prefix, Counts>,
    /// Idle connections, the longest idle first.
    idle: BTreeMap<u64, IdleClient>,
    /// Position of the next connection that becomes idle.
    next_idle: u64,
}

impl Counts {
    fn of(&mut self, progress: HandshakeProgress) -> &mut usize {
        match progress {
            HandshakeProgress::Unvalidated => &mut self.unvalidated,
            HandshakeProgress::Validated => &mut self.validated,
            HandshakeProgress::Connected => &mut self.connected,
        }
    }

    fn handshakes(&self, with_unvalidated: bool) -> usize {
        self.validated
            + if with_unvalidated {
                self.unvalidated
            } else {
                0
            }
    }

    fn connections(&self, with_unvalidated: bool) -> usize {
        self.connected + self.handshakes(with_unvalidated)
    }

    fn is_empty(&self) -> bool {
        self.connections(true) == 0
    }
}

impl Clients {
    /// The limit that another client at `ip` would exceed, if any.
    pub(super) fn exceeded(
        &self,
        limits: &ClientLimits,
        ip: IpAddr,
        is_validated: bool,
    ) -> Option<Refusal> {
        let with_unvalidated = !is_validated;
        if let Some(counts) = self.hosts.get(&Prefix::of_host(ip)) {
            if counts.connections(with_unvalidated) >= limits.max_connections_per_address {
                return Some(Refusal::ConnectionsOfAddress);
            }
            if counts.handshakes(with_unvalidated) >= limits.max_handshakes_per_address {
                return Some(Refusal::HandshakesOfAddress);
            }
        }
        let counts = self.networks.get(&Prefix::of_network(ip))?;
        if counts.connections(with_unvalidated) >= limits.max_connections_per_prefix {
            return Some(Refusal::ConnectionsOfPrefix);
        }
        let handshakes = counts.handshakes(with_unvalidated);
        (handshakes >= limits.max_handshakes_per_prefix).then_some(Refusal::HandshakesOfPrefix)
    }

    /// Counts a new client.
    pub(super) fn add(&mut self, ip: IpAddr, progress: HandshakeProgress) -> ClientId {
        self.adjust(ip, |counts| *counts.of(progress) += 1);
        let id = ClientId(self.next);
        self.next += 1;
        let client = Client {
            ip,
            progress,
            idle: None,
        };
        self.all.insert(id, client);
        id
    }

    /// Records that a client's handshake is complete.
    pub(super) fn on_connected(&mut self, id: ClientId) {
        let Some(client) = self.all.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut client.progress, HandshakeProgress::Connected);
        let ip = client.ip;
        self.adjust(ip, |counts| {
            *counts.of(before) -= 1;
            counts.connected += 1;
        });
    }

    /// Records that a client's connection, which is `at` a worker, became idle or active.
    pub(super) fn set_idle(&mut self, id: ClientId, at: Location, is_idle: bool) {
        let Some(client) = self.all.get_mut(&id) else {
            return;
        };
        if let Some(place) = client.idle.take() {
            self.idle.remove(&place);
        }
        if is_idle {
            let place = self.next_idle;
            self.next_idle += 1;
            client.idle = Some(place);
            let ip = client.ip;
            self.idle.insert(place, IdleClient { id, at, ip });
        }
    }

    /// Stops counting a client, if it is counted.
    pub(super) fn remove(&mut self, id: ClientId) {
        let Some(client) = self.all.remove(&id) else {
            return;
        };
        self.adjust(client.ip, |counts| *counts.of(client.progress) -= 1);
        if let Some(place) = client.idle {
            self.idle.remove(&place);
        }
    }

    /// The idle connection to evict for another client at `ip`: one of its own network, or of a prefix with more
    /// connections; of at most [`IDLE_CANDIDATES`] of the most suitable ones, the longest idle.
    pub(super) fn longest_idle_for(&self, ip: IpAddr) -> Option<IdleClient> {
        let own = self.connections_of_prefix(ip).max(1);
        let mut best: Option<(Suitability, IdleClient)> = None;
        for idle in self.idle.values().take(IDLE_CANDIDATES) {
            let suitability = if Prefix::of_host(idle.ip) == Prefix::of_host(ip) {
                Suitability::SameAddress
            } else if Prefix::of_network(idle.ip) == Prefix::of_network(ip) {
                Suitability::SamePrefix
            } else {
                match self.connections_of_prefix(idle.ip) {
                    count if count > own => Suitability::Crowded(count),
                    _ => continue,
                }
            };
            if best.is_none_or(|(known, _)| suitability > known) {
                best = Some((suitability, *idle));
            }
        }
        best.map(|(_, idle)| idle)
    }

    fn connections_of_prefix(&self, ip: IpAddr) -> usize {
        let counts = self.networks.get(&Prefix::of_network(ip));
        counts.map_or(0, |counts| counts.connections(true))
    }

    /// Applies the same change to the counts of the address and of the prefix.
    fn adjust(&mut self, ip: IpAddr, change: impl Fn(&mut Counts)) {
        adjust(&mut self.hosts, Prefix::of_host(ip), &change);
        adjust(&mut self.networks, Prefix::of_network(ip), &change);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
            && self.hosts.is_empty()
            && self.networks.is_empty()
            && self.idle.is_empty()
    }
}

fn adjust(table: &mut HashMap<Prefix, Counts>, key: Prefix, change: impl Fn(&mut Counts)) {
    match table.entry(key) {
        Entry::Occupied(mut entry) => {
            change(entry.get_mut());
            if entry.get().is_empty() {
                entry.remove();
            }
        }
        Entry::Vacant(entry) => change(entry.insert(Counts::default())),
    }
}

#[cfg(test)]
mod tests;
