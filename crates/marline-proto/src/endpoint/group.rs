//! The state that the endpoints of one server share, where each of its workers drives one.
//!
//! Locks are taken in this order: an endpoint, the group. An endpoint never takes the lock of another: it leaves orders
//! for its worker.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clients::Clients;
use super::earlier::Earlier;
use super::evict::Evictions;
use super::stateless::Budget;
use super::{ConnectionHandle, Endpoint};
use crate::crypto::ReplayFilter;

/// The endpoints of one server that have the same address, one for each of its workers: the limits on clients hold for
/// all of them together, and an address token is accepted by one of them only.
pub struct WorkerGroup {
    state: Mutex<GroupState>,
    /// By worker: whether there are orders for it.
    due: Box<[AtomicBool]>,
}

/// The part of a group that its mutex guards.
#[derive(Debug)]
pub(super) struct GroupState {
    pub(super) clients: Clients,
    pub(super) earlier: Earlier,
    pub(super) evictions: Evictions,
    pub(super) replays: ReplayFilter,
    pub(super) budget: Budget,
    /// By stateless reset token. Tokens are secrets of our peers.
    pub(super) reset_tokens: HashMap<[u8; 16], Location>,
    /// Connections that are not drained.
    pub(super) connections: usize,
    /// Handshakes in progress that clients started.
    pub(super) handshakes: usize,
    orders: Box<[Orders]>,
}

/// A connection among those of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Location {
    pub(super) worker: u8,
    pub(super) handle: ConnectionHandle,
}

/// Connections that a worker has to close or to have report, for itself or for others.
#[derive(Debug, Default)]
struct Orders {
    evicted: VecDeque<ConnectionHandle>,
    resumed: VecDeque<ConnectionHandle>,
}

impl WorkerGroup {
    /// A group of `workers`, at least one.
    pub fn new(workers: u8) -> Self {
        let workers = workers.max(1);
        let state = GroupState {
            clients: Clients::default(),
            earlier: Earlier::default(),
            evictions: Evictions::default(),
            replays: ReplayFilter::default(),
            budget: Budget::default(),
            reset_tokens: HashMap::new(),
            connections: 0,
            handshakes: 0,
            orders: (0..workers).map(|_| Orders::default()).collect(),
        };
        Self {
            state: Mutex::new(state),
            due: (0..workers).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The number of its workers.
    pub(super) fn workers(&self) -> u8 {
        u8::try_from(self.due.len()).unwrap_or(u8::MAX)
    }

    /// Ignores poisoning: an endpoint whose policy panicked has failed, and the others go on.
    pub(super) fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an order for the worker `worker`.
    fn set_due(&self, worker: u8) {
        if let Some(due) = self.due.get(usize::from(worker)) {
            due.store(true, Ordering::Release);
        }
    }

    /// The next of the orders for `worker` that `queue` selects.
    fn next_order(
        &self,
        worker: u8,
        queue: impl FnOnce(&mut Orders) -> &mut VecDeque<ConnectionHandle>,
    ) -> Option<ConnectionHandle> {
        let due = self.due.get(usize::from(worker))?;
        if !due.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.lock();
        let orders = state.orders.get_mut(usize::from(worker))?;
        let next = queue(orders).pop_front();
        if orders.evicted.is_empty() && orders.resumed.is_empty() {
            due.store(false, Ordering::Release);
        }
        next
    }
}

impl GroupState {
    /// Forgets the orders about a connection that is drained: handles are reused.
    pub(super) fn forget_orders(&mut self, at: Location) {
        if let Some(orders) = self.orders.get_mut(usize::from(at.worker)) {
            orders.evicted.retain(|handle| *handle != at.handle);
            orders.resumed.retain(|handle| *handle != at.handle);
        }
    }
}

impl Endpoint {
    /// The connection `handle` of this endpoint.
    pub(super) fn at(&self, handle: ConnectionHandle) -> Location {
        Location {
            worker: self.worker,
            handle,
        }
    }

    /// Has the worker of a connection that was evicted close it.
    pub(super) fn order_eviction(&mut self, state: &mut GroupState, at: Location) {
        if let Some(orders) = state.orders.get_mut(usize::from(at.worker)) {
            orders.evicted.push_back(at.handle);
            self.order(at.worker);
        }
    }

    /// Has the worker of a connection whose client has resumed its session have it report.
    pub(super) fn order_report(&mut self, state: &mut GroupState, at: Location) {
        if let Some(orders) = state.orders.get_mut(usize::from(at.worker))
            && !orders.resumed.contains(&at.handle)
        {
            orders.resumed.push_back(at.handle);
            self.order(at.worker);
        }
    }

    fn order(&mut self, worker: u8) {
        self.group.set_due(worker);
        if worker != self.worker && !self.ordered.contains(&worker) {
            self.ordered.push(worker);
        }
    }

    /// Another worker for which this endpoint has left orders, and which has to poll [`poll_evicted`](Self::poll_evicted)
    /// and [`poll_resumed`](Self::poll_resumed); to be polled after every datagram and every event of a connection until
    /// it returns `None`.
    pub fn poll_ordered(&mut self) -> Option<u8> {
        self.ordered.pop()
    }

    /// The next idle connection to [evict](crate::Connection::evict) for a new client; to be polled after
    /// every datagram until it returns `None`.
    pub fn poll_evicted(&mut self) -> Option<ConnectionHandle> {
        self.group
            .next_order(self.worker, |orders| &mut orders.evicted)
    }

    /// The next connection that has to [report its measurements](crate::Connection::report_resumed) because its
    /// client resumes the session in another one; to be polled after every datagram and every event of a
    /// connection until it returns `None`.
    pub fn poll_resumed(&mut self) -> Option<ConnectionHandle> {
        self.group
            .next_order(self.worker, |orders| &mut orders.resumed)
    }
}

impl fmt::Debug for WorkerGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerGroup")
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}
