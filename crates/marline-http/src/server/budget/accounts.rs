//! The accounts that hold bytes.

use std::collections::{BTreeMap, BTreeSet};

use marline::Prefix;

use crate::server::account::Account;

/// The holdings of each account, and the order of each client's accounts by them.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// By number.
    held: BTreeMap<u64, HeldBy>,
    /// Accounts whose clients are charged, by their holdings.
    by_bytes: BTreeSet<Size>,
    /// Holdings of accounts that have to end.
    ending: u64,
}

/// The holdings of an account.
#[derive(Debug)]
pub(super) struct HeldBy {
    bytes: u64,
    account: Account,
    /// Whether its client is no longer charged, since the account has to end.
    is_evicted: bool,
}

/// The order of the accounts of each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    client: Prefix,
    bytes: u64,
    number: u64,
}

impl HeldBy {
    fn size(&self) -> Size {
        Size {
            client: self.account.client(),
            bytes: self.bytes,
            number: self.account.number(),
        }
    }
}

/// An account that has to end.
pub(super) struct Evicted {
    pub(super) account: Account,
    pub(super) bytes: u64,
}

/// The charge of an account moves to another client.
pub(super) struct Moved {
    /// The client charged before.
    pub(super) from: Prefix,
    pub(super) bytes: u64,
}

/// Bytes were given back.
pub(super) struct GivenBack {
    /// The client that was charged for them, if any.
    pub(super) charged: Option<Prefix>,
    /// The remaining state of an account that holds nothing, to be dropped without the lock.
    pub(super) ended: Option<HeldBy>,
}

impl Accounts {
    /// Adds `bytes` to the holdings of `account`. Returns the client charged for them, if any.
    pub(super) fn add(&mut self, account: &Account, bytes: u64) -> Option<Prefix> {
        let held = self.held.entry(account.number()).or_insert_with(|| HeldBy {
            bytes: 0,
            account: account.clone(),
            is_evicted: false,
        });
        let before = held.size();
        held.bytes += bytes;
        if held.is_evicted {
            self.ending += bytes;
            return None;
        }
        self.by_bytes.remove(&before);
        self.by_bytes.insert(held.size());
        Some(held.account.client())
    }

    /// Charges the client of `account` for its holdings. `None` if that changes nothing.
    pub(super) fn charge_to_client_of(&mut self, account: &Account) -> Option<Moved> {
        let held = self.held.get_mut(&account.number())?;
        let from = held.account.client();
        if from == account.client() {
            return None;
        }
        let before = held.size();
        held.account = account.clone();
        // No client is charged for an account that has to end.
        self.by_bytes.remove(&before).then(|| {
            self.by_bytes.insert(held.size());
            let bytes = held.bytes;
            Moved { from, bytes }
        })
    }

    /// Subtracts `bytes` from the holdings of `account`.
    pub(super) fn subtract(&mut self, account: &Account, bytes: u64) -> Option<GivenBack> {
        let held = self.held.get_mut(&account.number())?;
        let before = held.size();
        held.bytes = held.bytes.saturating_sub(bytes);
        if held.is_evicted {
            self.ending = self.ending.saturating_sub(bytes);
        }
        let is_charged = self.by_bytes.remove(&before);
        let charged = is_charged.then(|| held.account.client());
        let ended = match held.bytes {
            0 => self.held.remove(&account.number()),
            _ => {
                self.by_bytes.extend(is_charged.then(|| held.size()));
                None
            }
        };
        Some(GivenBack { charged, ended })
    }

    /// Makes the largest account of `client` end: its client is no longer charged.
    pub(super) fn evict_largest(&mut self, client: Prefix) -> Option<Evicted> {
        let [first, last] = [0, u64::MAX].map(|most| Size {
            client,
            bytes: most,
            number: most,
        });
        let largest = *self.by_bytes.range(first..=last).next_back()?;
        self.by_bytes.remove(&largest);
        let held = self.held.get_mut(&largest.number)?;
        held.is_evicted = true;
        self.ending += held.bytes;
        Some(Evicted {
            account: held.account.clone(),
            bytes: held.bytes,
        })
    }

    /// Bytes of accounts that have to end.
    pub(super) fn ending(&self) -> u64 {
        self.ending
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.by_bytes.is_empty() && self.ending == 0
    }
}
