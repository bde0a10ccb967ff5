//! Bytes of files that were read and not yet received by clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use marline::Prefix;

use super::shares::Shares;

/// The budget of a server for such bytes. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Buffers(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    shares: Shares,
    /// Who waits for a part of the budget, in the order of arrival.
    waiting: BTreeMap<(Prefix, u64), Waker>,
    next: u64,
}

impl Buffers {
    /// Allows `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            shares: Shares::new(limit),
            waiting: BTreeMap::new(),
            next: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in use.
    pub(super) fn used(&self) -> u64 {
        self.state().shares.used()
    }

    fn give_back(&self, client: Prefix, bytes: usize) {
        let mut state = self.state();
        state.shares.give_back(client, bytes as u64);
        let woken = state.first_of_each_client();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// Removes the first who waits of each client that may take something.
    fn first_of_each_client(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        let mut next = self.waiting.keys().next().copied();
        while let Some((client, turn)) = next {
            if self.shares.available(client) > 0 {
                woken.extend(self.waiting.remove(&(client, turn)));
            }
            let after = (client, u64::MAX)..;
            next = self.waiting.range(after).next().map(|(&key, _)| key);
        }
        woken
    }

    /// Removes the first who waits of `client`, if it may take something.
    fn first_of(&mut self, client: Prefix) -> Option<Waker> {
        if self.shares.available(client) == 0 {
            return None;
        }
        let of_client = (client, 0)..=(client, u64::MAX);
        let first = *self.waiting.range(of_client).next()?.0;
        self.waiting.remove(&first)
    }
}

/// Who takes parts of the budget for one response.
#[derive(Debug)]
pub(super) struct Taker {
    buffers: Buffers,
    client: Prefix,
    /// Its turn while it waits.
    turn: Option<u64>,
}

impl Taker {
    pub(super) fn new(buffers: &Buffers, client: Prefix) -> Self {
        Self {
            buffers: buffers.clone(),
            client,
            turn: None,
        }
    }

    /// Takes up to `wanted` bytes; waits while the client may take none.
    pub(super) fn poll_take(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<Grant> {
        let mut state = self.buffers.state();
        let available = usize::try_from(state.shares.available(self.client)).unwrap_or(usize::MAX);
        let bytes = wanted.min(available);
        if bytes == 0 && wanted > 0 {
            let turn = match self.turn {
                Some(turn) => turn,
                None => {
                    state.next += 1;
                    state.next
                }
            };
            self.turn = Some(turn);
            let waker = cx.waker().clone();
            let known = state.waiting.insert((self.client, turn), waker);
            drop(state);
            // It may own a task, whose drop takes the lock.
            drop(known);
            return Poll::Pending;
        }
        state.shares.take(self.client, bytes as u64);
        let known = self
            .turn
            .take()
            .and_then(|turn| state.waiting.remove(&(self.client, turn)));
        // What is left may be enough for the next.
        let next = state.first_of(self.client);
        drop(state);
        drop(known);
        next.into_iter().for_each(Waker::wake);
        Poll::Ready(Grant {
            buffers: self.buffers.clone(),
            client: self.client,
            bytes,
        })
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let Some(turn) = self.turn else { return };
        let mut state = self.buffers.state();
        let known = state.waiting.remove(&(self.client, turn));
        // It was woken, and does not use its turn.
        let next = match known {
            Some(_) => None,
            None => state.first_of(self.client),
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
    client: Prefix,
    bytes: usize,
}

impl Grant {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what is above `bytes`.
    fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        if spare > 0 {
            self.bytes -= spare;
            self.buffers.give_back(self.client, spare);
        }
    }

    /// The bytes of `chunk`, which use the budget until the last of them is dropped.
    pub(super) fn hold(mut self, chunk: Vec<u8>) -> Bytes {
        self.shrink(chunk.capacity());
        Bytes::from_owner(Held {
            chunk,
            _grant: self,
        })
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.buffers.give_back(self.client, self.bytes);
        }
    }
}

/// Bytes that count.
struct Held {
    chunk: Vec<u8>,
    _grant: Grant,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.chunk
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    fn client(number: u8) -> Prefix {
        Prefix::of_network([10, 0, number, 1].into())
    }

    fn take(buffers: &Buffers, client: Prefix, wanted: usize) -> Option<Grant> {
        let mut taker = Taker::new(buffers, client);
        poll_fn(|cx| taker.poll_take(cx, wanted)).now_or_never()
    }

    #[test]
    fn bytes_count_until_the_last_slice_is_dropped() {
        let buffers = Buffers::new(1000);
        let chunk = take(&buffers, client(1), 100).unwrap().hold(vec![0; 40]);
        assert_eq!(buffers.used(), 40);
        let slice = chunk.slice(3..4);
        drop(chunk);
        assert_eq!(buffers.used(), 40);
        drop(slice);
        assert_eq!(buffers.used(), 0);
    }

    #[test]
    fn one_client_leaves_memory_for_others() {
        let buffers = Buffers::new(1000);
        let mut held = Vec::new();
        while let Some(grant) = take(&buffers, client(1), 100) {
            held.push(grant);
        }
        assert_eq!(buffers.used(), 500);
        assert_eq!(take(&buffers, client(2), 100).unwrap().bytes(), 100);
    }

    #[tokio::test]
    async fn all_that_wait_continue_as_bytes_are_dropped() {
        let buffers = Buffers::new(100);
        let held = take(&buffers, client(1), 50).unwrap();
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let buffers = buffers.clone();
                tokio::spawn(async move {
                    // One in three is abandoned while it waits.
                    let mut taker = Taker::new(&buffers, client(1));
                    let mut taking = pin!(poll_fn(|cx| taker.poll_take(cx, 10)));
                    if number % 3 == 0 {
                        assert!((&mut taking).now_or_never().is_none());
                        return;
                    }
                    drop(taking.await);
                })
            })
            .collect();
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        drop(held);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(buffers.used(), 0);
        assert!(buffers.state().waiting.is_empty());
    }
}
