//! The accounts that hold bytes.

use std::collections::{BTreeMap, BTreeSet};

use marline::Prefix;

use crate::server::account::{Account, AccountId};

/// What each account holds, and which of a client's holds the most.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    held: BTreeMap<AccountId, Held>,
    /// Those whose clients are charged, by what they hold.
    by_bytes: BTreeSet<Size>,
}

/// What an account holds.
#[derive(Debug)]
pub(super) struct Held {
    bytes: u64,
    account: Account,
    /// Whether its client is no longer charged, as it has to end.
    is_evicted: bool,
}

/// The order of the accounts of each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    client: Prefix,
    bytes: u64,
    number: u64,
}

impl Size {
    fn of(id: AccountId, bytes: u64) -> Self {
        Self {
            client: id.client,
            bytes,
            number: id.number,
        }
    }
}

/// An account that has to end.
pub(super) struct Evicted {
    pub(super) account: Account,
    pub(super) bytes: u64,
}

/// Bytes were given back.
pub(super) struct GivenBack {
    /// Whether the client was charged for them.
    pub(super) was_charged: bool,
    /// What is kept of an account that holds nothing any more, to be dropped without the lock.
    pub(super) ended: Option<Held>,
}

impl Accounts {
    /// `account` holds `bytes` more. Returns whether its client is charged for them.
    pub(super) fn add(&mut self, account: &Account, bytes: u64) -> bool {
        let id = account.id();
        let held = self.held.entry(id).or_insert_with(|| Held {
            bytes: 0,
            account: account.clone(),
            is_evicted: false,
        });
        if !held.is_evicted {
            self.by_bytes.remove(&Size::of(id, held.bytes));
            self.by_bytes.insert(Size::of(id, held.bytes + bytes));
        }
        held.bytes += bytes;
        !held.is_evicted
    }

    /// `account` holds `bytes` less.
    pub(super) fn subtract(&mut self, account: &Account, bytes: u64) -> Option<GivenBack> {
        let id = account.id();
        let held = self.held.get_mut(&id)?;
        let left = held.bytes.saturating_sub(bytes);
        let was_charged = !held.is_evicted;
        if was_charged {
            self.by_bytes.remove(&Size::of(id, held.bytes));
            if left > 0 {
                self.by_bytes.insert(Size::of(id, left));
            }
        }
        held.bytes = left;
        let ended = (left == 0).then(|| self.held.remove(&id)).flatten();
        Some(GivenBack { was_charged, ended })
    }

    /// The account of `client` that holds the most has to end: its client is no longer charged.
    pub(super) fn evict_largest(&mut self, client: Prefix) -> Option<Evicted> {
        let [first, last] = [0, u64::MAX].map(|most| Size {
            client,
            bytes: most,
            number: most,
        });
        let largest = *self.by_bytes.range(first..=last).next_back()?;
        self.by_bytes.remove(&largest);
        let number = largest.number;
        let held = self.held.get_mut(&AccountId { client, number })?;
        held.is_evicted = true;
        Some(Evicted {
            account: held.account.clone(),
            bytes: held.bytes,
        })
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.by_bytes.is_empty()
    }
}
