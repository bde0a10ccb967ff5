//! Waiters for a part of the budget.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use marline::Prefix;

/// Waiters woken at once. Each wakes further ones when it has taken its part; a single one could prevent that.
pub(super) const WOKEN_AT_ONCE: usize = 4;

/// Waiters, in the order in which they get a part: the clients with the smallest holdings first, of each client the one that
/// has waited longest.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    clients: BTreeMap<Prefix, Client>,
    /// The clients, by their holdings.
    by_held: BTreeSet<(u64, Prefix)>,
    next: u64,
}

#[derive(Debug)]
struct Client {
    held: u64,
    turns: BTreeMap<u64, Waker>,
}

impl Waiting {
    /// The turn of a new waiter.
    pub(super) fn next_turn(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Adds `waker` for a response of `client`, which holds `held` units. Returns the previous waker of the same turn.
    pub(super) fn insert(
        &mut self,
        client: Prefix,
        held: u64,
        turn: u64,
        waker: Waker,
    ) -> Option<Waker> {
        let entry = self.clients.entry(client).or_insert_with(|| {
            self.by_held.insert((held, client));
            Client {
                held,
                turns: BTreeMap::new(),
            }
        });
        entry.turns.insert(turn, waker)
    }

    /// Removes the waiter with this turn.
    pub(super) fn remove(&mut self, client: Prefix, turn: u64) -> Option<Waker> {
        let entry = self.clients.get_mut(&client)?;
        let waker = entry.turns.remove(&turn);
        if entry.turns.is_empty() {
            self.by_held.remove(&(entry.held, client));
            self.clients.remove(&client);
        }
        waker
    }

    /// Whether `client` has waiters.
    pub(super) fn has(&self, client: Prefix) -> bool {
        self.clients.contains_key(&client)
    }

    /// Sets the holdings of `client` to `held` units.
    pub(super) fn set_held(&mut self, client: Prefix, held: u64) {
        if let Some(entry) = self.clients.get_mut(&client) {
            self.by_held.remove(&(entry.held, client));
            self.by_held.insert((held, client));
            entry.held = held;
        }
    }

    /// Removes the first waiter of each client that `may_take` something, [`WOKEN_AT_ONCE`] at most. A client that holds more
    /// than one that may not take any may not either.
    pub(super) fn pop(&mut self, may_take: impl Fn(Prefix) -> bool) -> Vec<Waker> {
        let in_order = self.by_held.iter().map(|&(_, client)| client);
        let first: Vec<_> = in_order
            .take_while(|&client| may_take(client))
            .take(WOKEN_AT_ONCE)
            .collect();
        let mut woken = Vec::new();
        for client in first {
            let turns = self.clients.get(&client).map(|entry| &entry.turns);
            let turn = turns.and_then(|turns| turns.keys().next().copied());
            woken.extend(turn.and_then(|turn| self.remove(client, turn)));
        }
        woken
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.by_held.is_empty()
    }
}
