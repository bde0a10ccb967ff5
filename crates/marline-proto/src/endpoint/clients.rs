//! How much each network has of the connections of a server, and which of them are idle.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ConnectionHandle;
use super::stats::Refusal;
use crate::config::ClientLimits;

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its handshake is in progress, and its address may be forged.
    Unvalidated,
    /// Its handshake is in progress from a validated address.
    Validated,
    /// Its handshake is complete.
    Connected,
}

/// A connection of a client, as it is counted.
#[derive(Debug)]
pub(super) struct Client {
    ip: IpAddr,
    progress: Progress,
    /// Its place among the idle connections.
    idle: Option<u64>,
}

/// Connections of one address or one prefix.
#[derive(Debug, Default)]
struct Counts {
    unvalidated: usize,
    validated: usize,
    connected: usize,
    /// Idle connections, the one that is idle longest first.
    idle: BTreeMap<u64, ConnectionHandle>,
}

/// The connections of clients, by address and prefix: an entry for each that has any.
#[derive(Debug, Default)]
pub(super) struct Clients {
    // Clients choose their addresses within an IPv6 prefix: the hash function is keyed.
    addresses: HashMap<IpAddr, Counts>,
    prefixes: HashMap<IpAddr, Counts>,
    /// Prefixes with idle connections, by the number of all their connections.
    crowded: BTreeSet<(usize, IpAddr)>,
    /// The place of the next connection that becomes idle.
    next_idle: u64,
}

impl Counts {
    fn of(&mut self, progress: Progress) -> &mut usize {
        match progress {
            Progress::Unvalidated => &mut self.unvalidated,
            Progress::Validated => &mut self.validated,
            Progress::Connected => &mut self.connected,
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
    /// Which limit another client at `ip` would exceed, if any.
    pub(super) fn exceeded(
        &self,
        limits: &ClientLimits,
        ip: IpAddr,
        is_validated: bool,
    ) -> Option<Refusal> {
        let with_unvalidated = !is_validated;
        if let Some(counts) = self.addresses.get(&address(ip)) {
            if counts.connections(with_unvalidated) >= limits.max_connections_per_address {
                return Some(Refusal::ConnectionsOfAddress);
            }
            if counts.handshakes(with_unvalidated) >= limits.max_handshakes_per_address {
                return Some(Refusal::HandshakesOfAddress);
            }
        }
        let counts = self.prefixes.get(&prefix(ip))?;
        if counts.connections(with_unvalidated) >= limits.max_connections_per_prefix {
            return Some(Refusal::ConnectionsOfPrefix);
        }
        let handshakes = counts.handshakes(with_unvalidated);
        (handshakes >= limits.max_handshakes_per_prefix).then_some(Refusal::HandshakesOfPrefix)
    }

    /// Counts a new client.
    pub(super) fn add(&mut self, ip: IpAddr, progress: Progress) -> Client {
        self.adjust(ip, |counts| *counts.of(progress) += 1);
        Client {
            ip,
            progress,
            idle: None,
        }
    }

    /// The handshake of a client is complete.
    pub(super) fn on_connected(&mut self, client: &mut Client) {
        let before = std::mem::replace(&mut client.progress, Progress::Connected);
        self.adjust(client.ip, |counts| {
            *counts.of(before) -= 1;
            counts.connected += 1;
        });
    }

    /// A client's connection has become idle, or is no longer.
    pub(super) fn set_idle(
        &mut self,
        client: &mut Client,
        handle: ConnectionHandle,
        is_idle: bool,
    ) {
        if let Some(place) = client.idle.take() {
            self.adjust(client.ip, |counts| {
                counts.idle.remove(&place);
            });
        }
        if is_idle {
            let place = self.next_idle;
            self.next_idle += 1;
            client.idle = Some(place);
            self.adjust(client.ip, |counts| {
                counts.idle.insert(place, handle);
            });
        }
    }

    /// Counts a client no longer.
    pub(super) fn remove(&mut self, client: &Client) {
        self.adjust(client.ip, |counts| {
            *counts.of(client.progress) -= 1;
            if let Some(place) = client.idle {
                counts.idle.remove(&place);
            }
        });
    }

    /// Which idle connection ends for another client at `ip`: one of its own network, or of a prefix that has more.
    pub(super) fn longest_idle_for(&self, ip: IpAddr) -> Option<ConnectionHandle> {
        let own = self.prefixes.get(&prefix(ip));
        let first = |counts: &Counts| counts.idle.first_key_value().map(|(_, handle)| *handle);
        let address = self.addresses.get(&address(ip)).and_then(first);
        address.or_else(|| own.and_then(first)).or_else(|| {
            let (count, prefix) = self.crowded.last()?;
            let has_more = *count > own.map_or(1, |counts| counts.connections(true));
            self.prefixes
                .get(prefix)
                .filter(|_| has_more)
                .and_then(first)
        })
    }

    /// Changes the counts of the address and of the prefix in the same way.
    fn adjust(&mut self, ip: IpAddr, change: impl Fn(&mut Counts)) {
        adjust(&mut self.addresses, address(ip), &change);
        let prefix = prefix(ip);
        if let Some(counts) = self.prefixes.get(&prefix) {
            self.crowded.remove(&(counts.connections(true), prefix));
        }
        adjust(&mut self.prefixes, prefix, &change);
        if let Some(counts) = self.prefixes.get(&prefix)
            && !counts.idle.is_empty()
        {
            self.crowded.insert((counts.connections(true), prefix));
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.prefixes.is_empty() && self.crowded.is_empty()
    }
}

fn adjust(table: &mut HashMap<IpAddr, Counts>, key: IpAddr, change: impl Fn(&mut Counts)) {
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

/// What counts as one address: an IPv4 address or an IPv6 /64, the least that a host gets.
fn address(ip: IpAddr) -> IpAddr {
    network(ip, 32, 64)
}

/// An IPv4 /24 or an IPv6 /48: the least that is announced on the Internet.
fn prefix(ip: IpAddr) -> IpAddr {
    network(ip, 24, 48)
}

fn network(ip: IpAddr, bits_v4: u32, bits_v6: u32) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & (u32::MAX << (32 - bits_v4))).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - bits_v6))).into(),
    }
}

#[cfg(test)]
mod tests;
