//! A file that is open, and who holds it.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::sync::Arc;

use marline::Prefix;

use crate::server::account::Account;

/// A file that is open.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) file: Arc<File>,
    pub(super) identity: Option<Identity>,
    /// By the numbers of their accounts.
    pub(super) holders: BTreeMap<u64, Holding>,
    /// How many of the accounts charge each client.
    pub(super) clients: BTreeMap<Prefix, usize>,
    /// One of the clients.
    pub(super) guard: Prefix,
    /// Whether its holders have to end.
    pub(super) is_evicted: bool,
}

impl Entry {
    /// Charges the client of `account`, which holds the file as well. Returns whether the client did not hold it before.
    pub(super) fn add(&mut self, account: &Account) -> bool {
        let accounts = self.clients.entry(account.client()).or_default();
        *accounts += 1;
        *accounts == 1
    }

    /// The client of `account` is no longer charged for it. Returns whether the client does not hold the file any more.
    pub(super) fn remove(&mut self, account: &Account) -> bool {
        let client = account.client();
        let Some(accounts) = self.clients.get_mut(&client) else {
            return false;
        };
        *accounts -= 1;
        if *accounts == 0 {
            self.clients.remove(&client);
        }
        !self.clients.contains_key(&client)
    }
}

/// An account that holds a file.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) account: Account,
    pub(super) responses: usize,
}

/// Which file it is, as long as it is open: a new version of it has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        Some(Self {
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }

    /// Elsewhere files have no number, and are not shared.
    #[cfg(not(unix))]
    pub(super) fn of(_metadata: &Metadata) -> Option<Self> {
        None
    }
}
