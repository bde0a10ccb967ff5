//! Bytes of files that were read and not yet received by clients.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use marline::Prefix;

use super::account::{Account, AccountId};
use super::shares::Shares;
use crate::limits;
use crate::runtime::RuntimeHandle;

/// The budget of a server for such bytes. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Buffers(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    shares: Shares,
    /// Who waits for a part of the budget, in the order of arrival.
    waiting: BTreeMap<(Prefix, u64), Waker>,
    next: u64,
    held: BTreeMap<AccountId, Held>,
}

/// What an account holds.
#[derive(Debug)]
struct Held {
    bytes: u64,
    account: Account,
    /// Whether its client is no longer charged, as it has to end.
    is_evicted: bool,
}

/// A response waited for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too much is buffered")]
pub(super) struct BuffersUsedUp;

impl Buffers {
    /// Allows `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            shares: Shares::new(limit),
            waiting: BTreeMap::new(),
            next: 0,
            held: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in use.
    pub(super) fn used(&self) -> u64 {
        self.state().shares.used()
    }

    /// Takes up to `wanted` bytes for `account` if its client may take some.
    pub(super) fn try_take(&self, account: &Account, wanted: usize) -> Option<Grant> {
        let mut state = self.state();
        let bytes = state.shares.available(account.client()).min(wanted as u64);
        if bytes == 0 && wanted > 0 {
            return None;
        }
        state.take(account, bytes);
        drop(state);
        Some(self.grant(account, bytes))
    }

    /// The same, waiting for it up to `limit`. After a while, accounts of clients that hold more than they are entitled to
    /// have to end if that of `account` holds less.
    ///
    /// # Errors
    /// The limit has passed.
    pub(super) async fn take(
        self,
        account: Account,
        wanted: usize,
        runtime: RuntimeHandle,
        limit: Duration,
    ) -> Result<Grant, BuffersUsedUp> {
        if let Some(grant) = self.try_take(&account, wanted) {
            return Ok(grant);
        }
        let mut place = Place::new(&self, &account);
        let mut left = limit;
        loop {
            let patience = left.min(limits::BUFFER_PATIENCE);
            let granted = poll_fn(|cx| place.poll_take(cx, wanted));
            if let Ok(grant) = runtime.timeout(patience, granted).await {
                return Ok(grant);
            }
            left -= patience;
            if left.is_zero() {
                return Err(BuffersUsedUp);
            }
            let evicted = self.state().reclaim(account.client(), wanted as u64);
            evicted.iter().for_each(Account::evict);
        }
    }

    fn grant(&self, account: &Account, bytes: u64) -> Grant {
        Grant {
            buffers: self.clone(),
            account: account.clone(),
            bytes,
        }
    }

    fn give_back(&self, account: &Account, bytes: u64) {
        let mut state = self.state();
        let ended = state.give_back(account, bytes);
        let woken = state.first_of_each_client();
        drop(state);
        drop(ended);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// Charges `account` for what is available to its client.
    fn take(&mut self, account: &Account, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let held = self.held.entry(account.id()).or_insert_with(|| Held {
            bytes: 0,
            account: account.clone(),
            is_evicted: false,
        });
        held.bytes += bytes;
        let is_charged = !held.is_evicted;
        self.shares.occupy(bytes);
        if is_charged {
            self.shares.charge(account.client(), bytes);
        }
    }

    /// Returns what is kept of an account that holds nothing any more, to be dropped without the lock.
    fn give_back(&mut self, account: &Account, bytes: u64) -> Option<Held> {
        let held = self.held.get_mut(&account.id())?;
        held.bytes = held.bytes.saturating_sub(bytes);
        let is_empty = held.bytes == 0;
        match held.is_evicted {
            true => self.shares.free(bytes),
            false => self.shares.give_back(account.client(), bytes),
        }
        is_empty.then(|| self.held.remove(&account.id())).flatten()
    }

    /// Accounts that have to end so that `client` gets what it is entitled to of `wanted`: of the clients that hold the
    /// most, those that hold the most.
    fn reclaim(&mut self, client: Prefix, wanted: u64) -> Vec<Account> {
        let lacking = self.shares.lacking(client).min(wanted);
        let mut lacking = lacking.saturating_sub(self.shares.unused());
        let mut evicted = Vec::new();
        while lacking > 0
            && let Some(greediest) = self.shares.greediest(client)
        {
            let accounts = self.held.range_mut(AccountId::all_of(greediest));
            let charged = accounts.filter(|(_, held)| !held.is_evicted);
            let Some((_, largest)) = charged.max_by_key(|(_, held)| held.bytes) else {
                break;
            };
            largest.is_evicted = true;
            self.shares.discharge(greediest, largest.bytes);
            lacking = lacking.saturating_sub(largest.bytes);
            evicted.push(largest.account.clone());
        }
        evicted
    }

    /// Removes the first who waits of each client that may take something.
    fn first_of_each_client(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        let mut next = self.waiting.keys().next().copied();
        while let Some((client, turn)) = next {
            if self.shares.available_to_waiting(client) > 0 {
                woken.extend(self.waiting.remove(&(client, turn)));
            }
            let after = (client, u64::MAX)..;
            next = self.waiting.range(after).next().map(|(&key, _)| key);
        }
        woken
    }

    /// Removes the first who waits of `client`, if it may take something.
    fn first_of(&mut self, client: Prefix) -> Option<Waker> {
        if self.shares.available_to_waiting(client) == 0 {
            return None;
        }
        let of_client = (client, 0)..=(client, u64::MAX);
        let first = *self.waiting.range(of_client).next()?.0;
        self.waiting.remove(&first)
    }
}

/// A place among those of a client that wait for a part of the budget.
#[derive(Debug)]
struct Place<'a> {
    buffers: &'a Buffers,
    account: &'a Account,
    /// Its turn once it waits.
    turn: Option<u64>,
}

impl<'a> Place<'a> {
    fn new(buffers: &'a Buffers, account: &'a Account) -> Self {
        Self {
            buffers,
            account,
            turn: None,
        }
    }

    /// Takes up to `wanted` bytes; waits while the client may take none.
    fn poll_take(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<Grant> {
        let client = self.account.client();
        let mut state = self.buffers.state();
        let bytes = state.shares.available_to_waiting(client).min(wanted as u64);
        if bytes == 0 {
            let turn = match self.turn {
                Some(turn) => turn,
                None => {
                    state.next += 1;
                    state.next
                }
            };
            self.turn = Some(turn);
            let waker = cx.waker().clone();
            let known = state.waiting.insert((client, turn), waker);
            drop(state);
            // It may own a task, whose drop takes the lock.
            drop(known);
            return Poll::Pending;
        }
        state.take(self.account, bytes);
        let known = self
            .turn
            .take()
            .and_then(|turn| state.waiting.remove(&(client, turn)));
        // What is left may be enough for the next.
        let next = state.first_of(client);
        drop(state);
        drop(known);
        next.into_iter().for_each(Waker::wake);
        Poll::Ready(self.buffers.grant(self.account, bytes))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Some(turn) = self.turn else { return };
        let client = self.account.client();
        let mut state = self.buffers.state();
        let known = state.waiting.remove(&(client, turn));
        // It was woken, and does not use its turn.
        let next = match known {
            Some(_) => None,
            None => state.first_of(client),
        };
        drop(state);
        drop(known);
        next.into_iter().for_each(Waker::wake);
    }
}

/// A part of the budget, which is given back on drop.
#[derive(Debug)]
pub(super) struct Grant {
    buffers: Buffers,
    account: Account,
    bytes: u64,
}

impl Grant {
    pub(super) fn bytes(&self) -> usize {
        // No more than was wanted.
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Grows towards `wanted` bytes, as far as the client may take more.
    pub(super) fn grow(&mut self, wanted: usize) {
        let more = wanted.saturating_sub(self.bytes());
        if let Some(mut more) = self.buffers.try_take(&self.account, more) {
            self.bytes += std::mem::take(&mut more.bytes);
        }
    }

    /// Gives back what is above `bytes`.
    fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes as u64);
        if spare > 0 {
            self.bytes -= spare;
            self.buffers.give_back(&self.account, spare);
        }
    }

    /// The bytes of `chunk`, which use the budget until the last of them is dropped.
    pub(super) fn hold(mut self, chunk: Vec<u8>) -> Bytes {
        self.shrink(chunk.capacity());
        Bytes::from_owner(HeldChunk {
            chunk,
            _grant: self,
        })
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.buffers.give_back(&self.account, self.bytes);
        }
    }
}

/// Bytes that count.
struct HeldChunk {
    chunk: Vec<u8>,
    _grant: Grant,
}

impl AsRef<[u8]> for HeldChunk {
    fn as_ref(&self) -> &[u8] {
        &self.chunk
    }
}

#[cfg(test)]
mod tests;
