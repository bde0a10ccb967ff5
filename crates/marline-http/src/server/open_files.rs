//! The files that responses hold open: each once, and no more than the system allows.

mod entry;
mod guards;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::Prefix;

use self::entry::{Entry, Holding, Identity};
use self::guards::{Guarded, Guards};
use super::account::Account;
use super::budget::UsedUp;
use super::shares::Shares;
use crate::limits;

/// The open files of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct OpenFiles(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    shares: Shares,
    /// By number, in the order in which they were opened.
    files: BTreeMap<u64, Entry>,
    next: u64,
    /// The files that further responses may share.
    shared: BTreeMap<Identity, u64>,
    /// The numbers of accounts, and of the files that each holds.
    by_account: BTreeSet<(u64, u64)>,
    /// The guards of the files that count.
    guards: Guards,
    /// Files that no longer count, and are not closed by their holders yet.
    closing: usize,
}

/// The client has reached its limit of open files, or the system allows no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many files are open")]
pub(super) struct TooManyFiles;

impl OpenFiles {
    /// Allows `limit` open files.
    pub(super) fn new(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            shares: Shares::new(limit),
            files: BTreeMap::new(),
            next: 0,
            shared: BTreeMap::new(),
            by_account: BTreeSet::new(),
            guards: Guards::default(),
            closing: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files that are open.
    pub(super) fn open(&self) -> u64 {
        let state = self.state();
        state.shares.used() + state.closing as u64
    }

    /// Files that `client` is charged for.
    #[cfg(test)]
    pub(super) fn held_by(&self, client: Prefix) -> u64 {
        self.state().shares.held_by(client)
    }

    /// Holds `file` for a response of `account`. If it is open already, `file` is closed, and the open one is used. If no
    /// more may be open and the client of `account` holds fewer than it is entitled to, it gets the place of a file whose
    /// holders are all clients with more: their accounts have to end.
    ///
    /// # Errors
    /// The client may hold no other file.
    pub(super) fn hold(
        &self,
        account: &Account,
        file: File,
        metadata: &Metadata,
    ) -> Result<HeldFile, TooManyFiles> {
        let identity = Identity::of(metadata);
        let mut state = self.state();
        let evicted = state.make_room(account.client(), identity);
        let held = state.hold(account, identity, file);
        drop(state);
        evicted.iter().for_each(Account::evict);
        let Place { file, number } = held?;
        let holder = Holder {
            files: self.clone(),
            account: account.clone(),
            number,
        };
        Ok(HeldFile {
            file,
            _holder: Some(holder),
        })
    }

    /// Charges the client of `account` for its files, instead of another.
    pub(super) fn charge_to_client_of(&self, account: &Account) {
        self.state().charge_to_client_of(account);
    }
}

/// A file that is held, and its number.
struct Place {
    file: Arc<File>,
    number: u64,
}

impl State {
    /// Evicts a file if `client` is entitled to its place for another one.
    fn make_room(&mut self, client: Prefix, identity: Option<Identity>) -> Vec<Account> {
        let is_open = identity.is_some_and(|identity| self.shared.contains_key(&identity));
        let is_possible = self.closing < limits::CLOSING_FILES && self.shares.lacking(client) > 0;
        if is_open || self.shares.available_to_waiting(client) > 0 || !is_possible {
            return Vec::new();
        }
        let Some(number) = self.find_spare(client) else {
            return Vec::new();
        };
        let Some(entry) = self.files.get_mut(&number) else {
            return Vec::new();
        };
        entry.is_evicted = true;
        if let Some(identity) = entry.identity {
            self.shared.remove(&identity);
        }
        let guard = entry.guard;
        let clients: Vec<_> = entry.clients.keys().copied().collect();
        let holders = entry.holders.values();
        let evicted = holders.map(|holding| holding.account.clone()).collect();
        let file = number;
        self.guards.remove(Guarded { guard, file });
        for client in clients {
            self.discharge(client);
        }
        self.shares.free(1);
        self.closing += 1;
        evicted
    }

    /// A file that all of its holders can spare for `client`, if any. If each open file had a holder with no more than its
    /// entitlement, there would be fewer open files than places.
    fn find_spare(&mut self, client: Prefix) -> Option<u64> {
        loop {
            let first @ Guarded { guard, file } = self.guards.first()?;
            if !self.shares.is_greedy(guard, client) {
                return None;
            }
            let shares = &self.shares;
            let entry = self.files.get_mut(&file)?;
            let holders = entry.clients.keys().copied();
            let poorest = holders.min_by_key(|&holder| shares.held_by(holder))?;
            if shares.is_greedy(poorest, client) {
                return Some(file);
            }
            entry.guard = poorest;
            self.guards.remove(first);
            self.guard(poorest, file);
        }
    }

    /// Makes `client` the guard of a file.
    fn guard(&mut self, client: Prefix, file: u64) {
        let guard = client;
        let held = self.shares.held_by(client);
        self.guards.insert(Guarded { guard, file }, held);
    }

    /// Charges `client` for one more open file.
    fn charge(&mut self, client: Prefix) {
        self.shares.charge(client, 1);
        self.on_change(client);
    }

    /// Discharges `client` of one file.
    fn discharge(&mut self, client: Prefix) {
        self.shares.discharge(client, 1);
        self.on_change(client);
    }

    fn on_change(&mut self, client: Prefix) {
        let held = self.shares.held_by(client);
        self.guards.set_held(client, held);
    }

    fn hold(
        &mut self,
        account: &Account,
        identity: Option<Identity>,
        file: File,
    ) -> Result<Place, TooManyFiles> {
        let client = account.client();
        let open = identity.and_then(|identity| self.shared.get(&identity).copied());
        let number = match open {
            Some(number) => number,
            None if self.shares.take(client, 1) => {
                self.next += 1;
                let entry = Entry {
                    file: Arc::new(file),
                    identity,
                    holders: BTreeMap::new(),
                    clients: BTreeMap::new(),
                    guard: client,
                    is_evicted: false,
                };
                self.files.insert(self.next, entry);
                self.shared
                    .extend(identity.map(|identity| (identity, self.next)));
                self.on_change(client);
                self.guard(client, self.next);
                self.next
            }
            None => return Err(TooManyFiles),
        };
        let entry = self.files.get_mut(&number).ok_or(TooManyFiles)?;
        let file = Arc::clone(&entry.file);
        if let Some(holding) = entry.holders.get_mut(&account.number()) {
            holding.responses += 1;
            return Ok(Place { file, number });
        }
        let holding = Holding {
            account: account.clone(),
            responses: 1,
        };
        entry.holders.insert(account.number(), holding);
        self.by_account.insert((account.number(), number));
        if entry.add(account) && open.is_some() {
            self.charge(client);
        }
        Ok(Place { file, number })
    }

    /// Charges the client of `account` for its present files. The account has to end if the client thereby holds more than
    /// it could have taken.
    fn charge_to_client_of(&mut self, account: &Account) {
        let files = (account.number(), 0)..=(account.number(), u64::MAX);
        let files: Vec<_> = self.by_account.range(files).copied().collect();
        for (_, number) in files {
            let Some(entry) = self.files.get_mut(&number) else {
                continue;
            };
            let Some(holding) = entry.holders.get_mut(&account.number()) else {
                continue;
            };
            let before = std::mem::replace(&mut holding.account, account.clone());
            let (left, joined) = (entry.remove(&before), entry.add(account));
            if entry.is_evicted {
                continue;
            }
            if joined {
                self.charge(account.client());
            }
            if left {
                self.leave(before.client(), number);
            }
        }
        if self.shares.is_beyond(account.client()) {
            account.evict();
        }
    }

    /// `client` no longer holds a file that counts.
    fn leave(&mut self, client: Prefix, file: u64) {
        self.discharge(client);
        let Some(entry) = self
            .files
            .get_mut(&file)
            .filter(|entry| entry.guard == client)
        else {
            return;
        };
        let next = entry.clients.keys().next().copied();
        if let Some(next) = next {
            entry.guard = next;
        }
        let guard = client;
        self.guards.remove(Guarded { guard, file });
        if let Some(next) = next {
            self.guard(next, file);
        }
    }

    /// Releases a file, and returns the values to be dropped without the lock.
    fn released(&mut self, account: &Account, number: u64) -> ReleasedFile {
        let mut released = ReleasedFile::default();
        let Some(entry) = self.files.get_mut(&number) else {
            return released;
        };
        let Some(holding) = entry.holders.get_mut(&account.number()) else {
            return released;
        };
        holding.responses -= 1;
        if holding.responses > 0 {
            return released;
        }
        let charged = holding.account.clone();
        released.holding = entry.holders.remove(&account.number());
        self.by_account.remove(&(account.number(), number));
        let is_over = entry.holders.is_empty();
        if entry.remove(&charged) && !entry.is_evicted {
            self.leave(charged.client(), number);
        }
        if is_over {
            released.entry = self.files.remove(&number);
        }
        match &released.entry {
            Some(entry) if entry.is_evicted => self.closing -= 1,
            Some(entry) => {
                self.shares.free(1);
                if let Some(identity) = &entry.identity {
                    self.shared.remove(identity);
                }
            }
            None => {}
        }
        released
    }
}

/// The values of a released file.
#[derive(Default)]
struct ReleasedFile {
    holding: Option<Holding>,
    entry: Option<Entry>,
}

/// An open file, which is closed when its last holder drops it.
#[derive(Debug)]
pub(super) struct HeldFile {
    file: Arc<File>,
    _holder: Option<Holder>,
}

impl HeldFile {
    /// A file outside the count.
    pub(super) fn uncounted(file: File) -> Self {
        Self {
            file: Arc::new(file),
            _holder: None,
        }
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

/// A holder and its file.
#[derive(Debug)]
struct Holder {
    files: OpenFiles,
    account: Account,
    number: u64,
}

impl Drop for Holder {
    fn drop(&mut self) {
        let released = self.files.state().released(&self.account, self.number);
        drop(released);
    }
}

/// Whether a request fails because files or memory have run out, and may succeed later.
pub(super) fn is_exhaustion(error: &io::Error) -> bool {
    // ENFILE, EMFILE and ENOMEM have the same numbers on all systems with these names.
    let is_system = cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24 | 12));
    is_system
        || error
            .get_ref()
            .is_some_and(|cause| cause.is::<TooManyFiles>() || cause.is::<UsedUp>())
}

#[cfg(test)]
mod tests;
