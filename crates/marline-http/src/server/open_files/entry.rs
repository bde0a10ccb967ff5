//! An open file and its holders.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::sync::Arc;

use marline::Prefix;

use crate::server::account::Account;

/// An open file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) file: Arc<File>,
    pub(super) identity: Option<Identity>,
    /// By the numbers of their accounts.
    pub(super) holders: BTreeMap<u64, Holding>,
    /// The number of accounts that charge each client.
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

    /// Discharges the client of `account`. Returns whether the client no longer holds the file.
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

/// The identity of an open file: a new version of it has another number.
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

    /// On other systems files have no number, and are not shared.
    #[cfg(not(unix))]
    pub(super) fn of(_metadata: &Metadata) -> Option<Self> {
        None
    }
}
