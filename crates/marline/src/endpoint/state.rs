//! An endpoint as its handles and its driver share it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use marline_proto::coordination::bundle;
use marline_proto::{ClientConfig, ConnectionError, ConnectionHandle, Instant, ServerConfig, Side};

use crate::connection::{self, ConnectionRef};
use crate::runtime::{Runtime, UdpSocket};
use crate::signal::Signal;
use crate::wakers::WakerList;

/// Connections that may wait for [`Endpoint::accept`](super::Endpoint::accept) before new ones are
/// refused: a server that is so far behind only makes its clients wait for nothing.
const ACCEPT_BACKLOG: usize = 4096;

/// What everyone who knows the endpoint shares.
///
/// Locks are taken in this order: endpoint, connection, signal.
pub(super) struct Shared {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) signal: Arc<Signal<Arc<connection::Shared>>>,
    state: Mutex<State>,
    /// Clones of the endpoint in the application's hands.
    pub(super) handles: AtomicUsize,
}

/// What the endpoint's mutex guards.
pub(super) struct State {
    pub(super) proto: marline_proto::Endpoint,
    pub(super) socket: Arc<dyn UdpSocket>,
    pub(super) local: SocketAddr,
    /// By handle.
    pub(super) connections: Vec<Option<Arc<connection::Shared>>>,
    /// How many there are in `connections`.
    pub(super) live: usize,
    pub(super) server_config: Option<Arc<ServerConfig>>,
    pub(super) client_config: Option<ClientConfig>,
    pub(super) accepted: VecDeque<ConnectionRef>,
    pub(super) accepting: WakerList,
    pub(super) idle: WakerList,
    /// Closed by the application.
    pub(super) closed: bool,
    /// The driver ended: no datagram will ever be sent or received again.
    pub(super) driver_gone: bool,
}

impl Shared {
    pub(super) fn new(runtime: Arc<dyn Runtime>, state: State) -> Self {
        Self {
            runtime,
            signal: Arc::default(),
            state: Mutex::new(state),
            handles: AtomicUsize::new(0),
        }
    }

    /// After a panic the driver is gone, and the state says so.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection that the protocol's endpoint just made.
    pub(super) fn adopt(
        &self,
        state: &mut State,
        handle: ConnectionHandle,
        side: Side,
        proto: Box<marline_proto::Connection>,
    ) -> Arc<connection::Shared> {
        let shared = connection::Shared::new(
            proto,
            handle,
            side,
            (Arc::clone(&state.socket), state.local),
            Arc::clone(&self.runtime),
            Arc::clone(&self.signal),
        );
        if state.connections.len() <= handle.0 {
            state.connections.resize(handle.0 + 1, None);
        }
        state.connections[handle.0] = Some(Arc::clone(&shared));
        state.live += 1;
        shared
    }
}

impl State {
    pub(super) fn connection(&self, handle: ConnectionHandle) -> Option<&Arc<connection::Shared>> {
        self.connections.get(handle.0)?.as_ref()
    }

    /// Whether connections of clients would be refused.
    pub(super) fn refuses(&self) -> bool {
        self.closed || self.driver_gone
    }

    /// Takes a signal of a connection to the engine of its bundle.
    pub(super) fn coordinate(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        signal: bundle::Signal,
    ) {
        let connections = &self.connections;
        self.proto.coordinate(now, handle, signal, &mut |member| {
            let connection = connections.get(member.0)?.as_ref()?;
            let state = connection.lock();
            (!state.drained).then(|| state.proto.member_view())
        });
    }

    /// Has connections whose clients are back tell what they have seen.
    pub(super) fn ask_earlier(&mut self, now: Instant) {
        while let Some(handle) = self.proto.poll_resumed() {
            if let Some(connection) = self.connection(handle) {
                connection.lock().proto.tell_resumed(now);
            }
        }
    }

    /// Tells the protocol's endpoint whom it may let in.
    pub(super) fn apply_server_config(&mut self) {
        let open = !self.refuses() && self.accepted.len() < ACCEPT_BACKLOG;
        let mut config = self.server_config.clone();
        if let Some(config) = &mut config
            && !open
        {
            // Refused, not ignored: a client then knows at once.
            Arc::make_mut(config).max_connections = 0;
        }
        self.proto.set_server_config(config);
    }

    /// Queues a new connection for [`Endpoint::accept`](super::Endpoint::accept).
    pub(super) fn push_accepted(&mut self, connection: ConnectionRef, woken: &mut Vec<Waker>) {
        self.accepted.push_back(connection);
        self.accepting.take(woken);
        if self.accepted.len() == ACCEPT_BACKLOG {
            self.apply_server_config();
        }
    }

    pub(super) fn pop_accepted(&mut self) -> Option<ConnectionRef> {
        let was_full = self.accepted.len() >= ACCEPT_BACKLOG;
        let connection = self.accepted.pop_front()?;
        if was_full {
            self.apply_server_config();
        }
        Some(connection)
    }

    /// Forgets a connection that is drained.
    pub(super) fn forget(&mut self, handle: ConnectionHandle, woken: &mut Vec<Waker>) {
        let slot = self.connections.get_mut(handle.0);
        if slot.and_then(Option::take).is_some() {
            self.live -= 1;
        }
        if self.is_idle() {
            self.idle.take(woken);
        }
    }

    /// No connection is left, not even one that is saying goodbye.
    pub(super) fn is_idle(&self) -> bool {
        self.driver_gone || self.live == 0
    }

    /// The end of the driver is the end of every connection.
    pub(super) fn on_driver_gone(&mut self, woken: &mut Vec<Waker>) {
        self.driver_gone = true;
        for connection in self.connections.drain(..).flatten() {
            let mut state = connection.lock();
            state.drained = true;
            state.terminate(ConnectionError::LocallyClosed, woken);
        }
        self.accepting.take(woken);
        self.idle.take(woken);
    }
}
