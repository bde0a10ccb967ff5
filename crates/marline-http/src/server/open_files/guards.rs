//! The choice of the open file to close for another client.

use std::collections::{BTreeMap, BTreeSet};

use marline::Prefix;

/// The guard of each file: one of the clients that hold it. The first file to close is the longest open one of the guard
/// with the largest holdings; if another holder of it cannot spare it, that becomes its guard.
#[derive(Debug, Default)]
pub(super) struct Guards {
    guards: BTreeMap<Prefix, Guard>,
    /// The guards, by their holdings.
    by_held: BTreeSet<(u64, Prefix)>,
}

#[derive(Debug, Default)]
struct Guard {
    /// Files that it holds, guarded or not.
    held: u64,
    /// The numbers of those that it guards.
    files: BTreeSet<u64>,
}

/// A file, and its guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guarded {
    pub(super) guard: Prefix,
    pub(super) file: u64,
}

impl Guards {
    /// Makes the client, which holds `held` files, guard this one.
    pub(super) fn insert(&mut self, guarded: Guarded, held: u64) {
        let guard = self.guards.entry(guarded.guard).or_default();
        guard.files.insert(guarded.file);
        self.by_held.insert((guard.held, guarded.guard));
        self.set_held(guarded.guard, held);
    }

    /// The client no longer guards this file.
    pub(super) fn remove(
        &mut self,
        Guarded {
            guard: client,
            file,
        }: Guarded,
    ) {
        let Some(guard) = self.guards.get_mut(&client) else {
            return;
        };
        guard.files.remove(&file);
        if guard.files.is_empty() {
            self.by_held.remove(&(guard.held, client));
            self.guards.remove(&client);
        }
    }

    /// Sets the holdings of `client` to `held` files.
    pub(super) fn set_held(&mut self, client: Prefix, held: u64) {
        if let Some(guard) = self.guards.get_mut(&client) {
            self.by_held.remove(&(guard.held, client));
            self.by_held.insert((held, client));
            guard.held = held;
        }
    }

    /// The longest open file of the guard with the largest holdings.
    pub(super) fn first(&self) -> Option<Guarded> {
        let &(_, guard) = self.by_held.last()?;
        let file = *self.guards.get(&guard)?.files.first()?;
        Some(Guarded { guard, file })
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.guards.is_empty() && self.by_held.is_empty()
    }
}
