//! The open connections by network, and the choice of those to close for another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use marline::{Instant, Prefix};
use tokio::sync::Notify;

use super::super::progress::Progress;
use crate::limits;

/// The connections of all networks. The longest idle one is found without a scan: each is filed under the earliest time
/// when it may be closed, and examined at that time. Progress since then moves it to a later one, at most twice in
/// [`limits::UNUSED_BEFORE_EVICTION`].
#[derive(Debug, Default)]
pub(super) struct Networks {
    networks: BTreeMap<Prefix, Network>,
    /// Networks none of whose connections may be closed yet, by the earliest time when one may.
    waiting: BTreeSet<(Instant, Prefix)>,
    /// The other networks, by their number of connections.
    crowds: BTreeSet<(usize, Prefix)>,
    /// Connections that were examined.
    #[cfg(test)]
    pub(super) examined: usize,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) host: Prefix,
    pub(super) progress: Arc<Progress>,
    pub(super) evicted: Arc<Notify>,
}

impl Entry {
    /// When it may be closed for another connection, unless it makes progress.
    pub(super) fn evictable_from(&self) -> Instant {
        let limit = match self.progress.is_unused() {
            true => limits::UNUSED_BEFORE_EVICTION,
            false => limits::STALLED_BEFORE_EVICTION,
        };
        self.progress.last() + limit
    }

    /// The earliest time when it may be closed, whatever happens after `now`. A response may end at once.
    fn due(&self, now: Instant) -> Instant {
        let soonest = now + limits::UNUSED_BEFORE_EVICTION;
        self.evictable_from().min(soonest)
    }
}

/// The position of a connection among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    id: u64,
}

/// The connections of a network.
#[derive(Debug, Default)]
struct Network {
    open: BTreeMap<u64, Scheduled>,
    by_due: BTreeSet<Due>,
    hosts: BTreeMap<Prefix, BTreeSet<Due>>,
    place: Option<Place>,
}

#[derive(Debug)]
struct Scheduled {
    entry: Entry,
    due: Instant,
}

/// The position of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting(Instant),
    Crowd(usize),
}

impl Network {
    fn schedule(&mut self, id: u64, entry: Entry, at: Instant) {
        let due = Due { at, id };
        self.by_due.insert(due);
        self.hosts.entry(entry.host).or_default().insert(due);
        self.open.insert(id, Scheduled { entry, due: at });
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let Scheduled { entry, due } = self.open.remove(&id)?;
        let due = Due { at: due, id };
        self.by_due.remove(&due);
        if let Some(of_host) = self.hosts.get_mut(&entry.host) {
            of_host.remove(&due);
            if of_host.is_empty() {
                self.hosts.remove(&entry.host);
            }
        }
        Some(entry)
    }

    /// The connection that is due first, of `host` or else of all.
    fn first(&self, host: Option<Prefix>) -> Option<Due> {
        let due = match host {
            Some(host) => self.hosts.get(&host)?,
            None => &self.by_due,
        };
        due.first().copied()
    }

    fn place(&self, now: Instant) -> Option<Place> {
        self.by_due.first().map(|first| match first.at <= now {
            true => Place::Crowd(self.open.len()),
            false => Place::Waiting(first.at),
        })
    }
}

impl Networks {
    /// Connections of `network`, or of a `host` in it.
    pub(super) fn count(&self, network: Prefix, host: Option<Prefix>) -> usize {
        let Some(network) = self.networks.get(&network) else {
            return 0;
        };
        match host {
            Some(host) => network.hosts.get(&host).map_or(0, BTreeSet::len),
            None => network.open.len(),
        }
    }

    /// The connection with the number `id` was opened from `network` at `now`.
    pub(super) fn insert(&mut self, network: Prefix, id: u64, entry: Entry, now: Instant) {
        let due = entry.due(now);
        let of_network = self.networks.entry(network).or_default();
        of_network.schedule(id, entry, due);
        self.file(network, now);
    }

    pub(super) fn remove(&mut self, network: Prefix, id: u64, now: Instant) -> Option<Entry> {
        let of_network = self.networks.get_mut(&network)?;
        let entry = of_network.remove(id)?;
        self.file(network, now);
        Some(entry)
    }

    /// The connection of `network`, or of a `host` in it, that could have been closed for longest.
    pub(super) fn longest_idle(
        &mut self,
        network: Prefix,
        host: Option<Prefix>,
        now: Instant,
    ) -> Option<u64> {
        let of_network = self.networks.get_mut(&network)?;
        let longest = loop {
            let first = of_network.first(host).filter(|first| first.at <= now);
            let Some(Due { at, id }) = first else {
                break None;
            };
            #[cfg(test)]
            {
                self.examined += 1;
            }
            let entry = &of_network.open.get(&id)?.entry;
            if entry.evictable_from() <= at {
                break Some(id);
            }
            let due = entry.due(now);
            let entry = of_network.remove(id)?;
            of_network.schedule(id, entry, due);
        };
        self.file(network, now);
        longest
    }

    /// The network with the most connections among those with one that may be closed, if it `is_crowded`: if it is not,
    /// none is.
    pub(super) fn most_crowded(
        &mut self,
        now: Instant,
        is_crowded: impl Fn(Prefix, usize) -> bool,
    ) -> Option<Prefix> {
        while let Some(&(due, network)) = self.waiting.first()
            && due <= now
        {
            self.file(network, now);
        }
        loop {
            let &(connections, network) = self.crowds.last()?;
            if !is_crowded(network, connections) {
                return None;
            }
            if self.longest_idle(network, None, now).is_some() {
                return Some(network);
            }
        }
    }

    /// Moves `network` to its present position; nowhere if it has no connections.
    fn file(&mut self, network: Prefix, now: Instant) {
        let Some(of_network) = self.networks.get_mut(&network) else {
            return;
        };
        let place = of_network.place(now);
        let before = std::mem::replace(&mut of_network.place, place);
        if place.is_none() {
            self.networks.remove(&network);
        }
        if place == before {
            return;
        }
        match before {
            Some(Place::Waiting(due)) => drop(self.waiting.remove(&(due, network))),
            Some(Place::Crowd(connections)) => drop(self.crowds.remove(&(connections, network))),
            None => {}
        }
        match place {
            Some(Place::Waiting(due)) => drop(self.waiting.insert((due, network))),
            Some(Place::Crowd(connections)) => drop(self.crowds.insert((connections, network))),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
