//! A resource of which clients take parts, or wait for them: bytes held between two sides, or places of requests.

mod accounts;
mod claims;
mod waiting;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use marline::Prefix;

use self::accounts::{Accounts, HeldBy};
use self::claims::Claims;
use self::waiting::Waiting;
use super::account::Account;
use super::shares::Shares;
use crate::limits;
use crate::runtime::RuntimeHandle;

/// A limit, and the part of it that each client holds. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    shares: Shares,
    waiting: Waiting,
    accounts: Accounts,
    claims: Claims,
}

/// Nothing was left in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too much is buffered")]
pub(crate) struct UsedUp;

impl Budget {
    /// Allows `limit` units.
    pub(crate) fn new(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            shares: Shares::new(limit),
            waiting: Waiting::default(),
            accounts: Accounts::default(),
            claims: Claims::default(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Units in use.
    pub(crate) fn used(&self) -> u64 {
        self.state().shares.used()
    }

    /// Bytes that `client` is charged for.
    #[cfg(test)]
    pub(super) fn held_by(&self, client: Prefix) -> u64 {
        self.state().shares.held_by(client)
    }

    /// Takes up to `wanted` bytes for `account` if its client may take some.
    pub(crate) fn try_take(&self, account: &Account, wanted: usize) -> Option<Grant> {
        let mut state = self.state();
        let bytes = state.shares.available(account.client()).min(wanted as u64);
        if bytes == 0 && wanted > 0 {
            return None;
        }
        state.take(account, bytes);
        drop(state);
        Some(self.grant(account, bytes))
    }

    /// The same, unless others of its client are waiting already, whose turn comes first.
    pub(crate) fn try_take_in_turn(&self, account: &Account, wanted: usize) -> Option<Grant> {
        let is_waited_for = self.state().waiting.has(account.client());
        match is_waited_for {
            true => None,
            false => self.try_take(account, wanted),
        }
    }

    /// The same as [`try_take`](Self::try_take), waiting for it up to `limit`. After a while, accounts of clients that hold more
    /// than they are entitled to have to end if that of `account` holds less.
    ///
    /// # Errors
    /// The limit has passed.
    pub(crate) async fn take(
        self,
        account: Account,
        wanted: usize,
        runtime: RuntimeHandle,
        limit: Duration,
    ) -> Result<Grant, UsedUp> {
        if let Some(grant) = self.try_take_in_turn(&account, wanted) {
            return Ok(grant);
        }
        let mut place = Place::new(&self, &account);
        let mut left = limit;
        loop {
            let patience = left.min(limits::BUFFER_RECLAIM_DELAY);
            let granted = poll_fn(|cx| place.poll_take(cx, wanted));
            if let Ok(grant) = runtime.timeout(patience, granted).await {
                return Ok(grant);
            }
            left -= patience;
            if left.is_zero() {
                return Err(UsedUp);
            }
            let evicted = place.claim(wanted as u64);
            evicted.iter().for_each(Account::evict);
        }
    }

    /// Charges the client of `account` for its holdings, instead of another.
    pub(super) fn charge_to_client_of(&self, account: &Account) {
        let mut state = self.state();
        state.charge_to_client_of(account);
        let woken = state.pop_waiting();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    fn grant(&self, account: &Account, bytes: u64) -> Grant {
        Grant {
            budget: self.clone(),
            account: account.clone(),
            bytes,
        }
    }

    fn give_back(&self, account: &Account, bytes: u64) {
        let mut state = self.state();
        let ended = state.give_back(account, bytes);
        let woken = state.pop_waiting();
        drop(state);
        drop(ended);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// Charges `account` for the units available to its client.
    fn take(&mut self, account: &Account, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.charge_to_client_of(account);
        self.shares.occupy(bytes);
        if let Some(client) = self.accounts.add(account, bytes) {
            self.shares.charge(client, bytes);
            self.on_change(client);
        }
    }

    /// Charges the client of `account` for its present holdings. The account has to end if the client thereby holds more than it
    /// could have taken: otherwise requests in 0-RTT would fill their share again and again, for one network.
    fn charge_to_client_of(&mut self, account: &Account) {
        let Some(moved) = self.accounts.charge_to_client_of(account) else {
            return;
        };
        self.shares.discharge(moved.from, moved.bytes);
        self.shares.charge(account.client(), moved.bytes);
        self.on_change(moved.from);
        self.on_change(account.client());
        if self.shares.is_beyond(account.client()) {
            account.evict();
        }
    }

    /// Returns the remaining state of an account that holds nothing, to be dropped without the lock.
    fn give_back(&mut self, account: &Account, bytes: u64) -> Option<HeldBy> {
        let given_back = self.accounts.subtract(account, bytes)?;
        self.shares.free(bytes);
        if let Some(client) = given_back.charged {
            self.shares.discharge(client, bytes);
            self.on_change(client);
        }
        given_back.ended
    }

    /// Updates the holdings of `client`.
    fn on_change(&mut self, client: Prefix) {
        let held = self.shares.held_by(client);
        self.waiting.set_held(client, held);
        self.claims.update(client, self.shares.lacking(client));
    }

    /// Accounts that have to end so that `client` gets its claim: the largest accounts of the largest clients. All clients with
    /// claims share the free units and those of accounts that already have to end.
    fn reclaim(&mut self, client: Prefix) -> Vec<Account> {
        let claimed = self.claims.update(client, self.shares.lacking(client));
        let coming = self.shares.unused() + self.accounts.ending();
        let mut lacking = self.claims.total().saturating_sub(coming).min(claimed);
        let mut evicted = Vec::new();
        while lacking > 0
            && let Some(greediest) = self.shares.greediest(client)
            && let Some(largest) = self.accounts.evict_largest(greediest)
        {
            self.shares.discharge(greediest, largest.bytes);
            self.on_change(greediest);
            lacking = lacking.saturating_sub(largest.bytes);
            evicted.push(largest.account);
        }
        evicted
    }

    /// Removes waiters that may take a part.
    fn pop_waiting(&mut self) -> Vec<Waker> {
        let shares = &self.shares;
        self.waiting
            .pop(|client| shares.available_to_waiting(client) > 0)
    }
}

/// A place among the waiters of a client.
#[derive(Debug)]
struct Place<'a> {
    budget: &'a Budget,
    account: &'a Account,
    /// Its turn once it waits.
    turn: Option<u64>,
    /// Units that it has waited for too long.
    claimed: u64,
}

impl<'a> Place<'a> {
    fn new(budget: &'a Budget, account: &'a Account) -> Self {
        Self {
            budget,
            account,
            turn: None,
            claimed: 0,
        }
    }

    /// Claims `wanted` bytes after too long a wait. Returns the accounts that have to end.
    fn claim(&mut self, wanted: u64) -> Vec<Account> {
        let client = self.account.client();
        let mut state = self.budget.state();
        if self.claimed == 0 {
            self.claimed = wanted;
            let lacking = state.shares.lacking(client);
            state.claims.add(client, wanted, lacking);
        }
        state.reclaim(client)
    }

    /// Withdraws the claim: it no longer waits.
    fn unclaim(&mut self, state: &mut State) {
        let claimed = std::mem::take(&mut self.claimed);
        if claimed > 0 {
            let client = self.account.client();
            let lacking = state.shares.lacking(client);
            state.claims.remove(client, claimed, lacking);
        }
    }

    /// Takes up to `wanted` bytes; waits while the client may take none, and behind earlier waiters of the client.
    fn poll_take(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<Grant> {
        let client = self.account.client();
        let budget = self.budget;
        let mut state = budget.state();
        let has_turn = self.turn.is_some() || !state.waiting.has(client);
        let available = match has_turn {
            true => state.shares.available_to_waiting(client),
            false => 0,
        };
        let bytes = available.min(wanted as u64);
        if bytes == 0 {
            let turn = self.turn.unwrap_or_else(|| state.waiting.next_turn());
            self.turn = Some(turn);
            let waker = cx.waker().clone();
            let held = state.shares.held_by(client);
            let known = state.waiting.insert(client, held, turn, waker);
            drop(state);
            // It may own a task, whose drop takes the lock.
            drop(known);
            return Poll::Pending;
        }
        state.take(self.account, bytes);
        self.unclaim(&mut state);
        let known = self
            .turn
            .take()
            .and_then(|turn| state.waiting.remove(client, turn));
        // What is left may be enough for others.
        let next = state.pop_waiting();
        drop(state);
        drop(known);
        next.into_iter().for_each(Waker::wake);
        Poll::Ready(self.budget.grant(self.account, bytes))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let budget = self.budget;
        let mut state = budget.state();
        self.unclaim(&mut state);
        let Some(turn) = self.turn else { return };
        let client = self.account.client();
        let known = state.waiting.remove(client, turn);
        // It was woken, and does not use its turn.
        let next = match known {
            Some(_) => Vec::new(),
            None => state.pop_waiting(),
        };
        drop(state);
        drop(known);
        next.into_iter().for_each(Waker::wake);
    }
}

/// A part of the budget, which is returned on drop.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Budget,
    account: Account,
    bytes: u64,
}

impl Grant {
    pub(super) fn bytes(&self) -> usize {
        // No more than was wanted.
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Grows towards `wanted` bytes, as far as the client may take more. `account` is its account, which determines the network
    /// charged now: it may have changed since the first bytes were taken.
    pub(super) fn grow(&mut self, account: &Account, wanted: usize) {
        let more = wanted.saturating_sub(self.bytes());
        if let Some(mut more) = self.budget.try_take(account, more) {
            self.bytes += std::mem::take(&mut more.bytes);
        }
    }

    /// Returns the part above `bytes`.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes as u64);
        if spare > 0 {
            self.bytes -= spare;
            self.budget.give_back(&self.account, spare);
        }
    }

    /// The bytes of `chunk`, which use the budget until the last of them is dropped.
    pub(super) fn hold(mut self, chunk: Vec<u8>) -> Bytes {
        self.shrink(chunk.capacity());
        Bytes::from_owner(Held {
            bytes: chunk,
            _grant: self,
        })
    }

    /// The same for a part of a larger buffer, and its overhead.
    pub(super) fn hold_part(mut self, part: Bytes) -> Bytes {
        self.shrink(part.len() + limits::HELD_PART_BYTES);
        if part.len() < limits::MIN_CHUNK_BYTES {
            // A few bytes would keep their whole buffer.
            return Bytes::from_owner(Held {
                bytes: part.to_vec(),
                _grant: self,
            });
        }
        Bytes::from_owner(Held {
            bytes: part,
            _grant: self,
        })
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(&self.account, self.bytes);
        }
    }
}

/// Bytes that use the budget.
struct Held<B> {
    bytes: B,
    _grant: Grant,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests;
