//! The state of an endpoint that its handles and its driver share.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use marline_proto::coordination::bundle;
use marline_proto::{ClientConfig, ConnectionError, ConnectionHandle, Instant, ServerConfig, Side};
use tokio::sync::Notify;

use super::driver::enqueue;
use super::inbox::{Inbox, PassOn, Passed, PassedDatagram};
use crate::connection::{ConnectionRef, SharedConnection};
use crate::runtime::{BoundSocket, Runtime, UdpSocket};
use crate::signal::Signal;
use crate::wakers::WakerList;

/// Connections that may wait for [`Endpoint::accept`](super::Endpoint::accept) before new ones are
/// refused: the clients of a server that is so far behind would time out.
const ACCEPT_BACKLOG: usize = 4096;

/// An endpoint as its handles and its driver share it.
///
/// Locks are taken in this order: endpoint, connection, signal.
pub(super) struct SharedEndpoint {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) signal: Arc<Signal<Arc<SharedConnection>>>,
    state: Mutex<EndpointState>,
    /// Clones of the endpoint in the application's hands.
    pub(super) handles: AtomicUsize,
    /// Whether anyone waits until all CONNECTION_CLOSE are sent: the driver looks only then.
    pub(super) awaits_close_sent: AtomicBool,
    /// Whether the socket is to be read; otherwise another process reads it.
    receives: AtomicBool,
    /// Whether a task migrates the connections, and what wakes it.
    pub(super) is_watched: AtomicBool,
    pub(super) trouble: Notify,
    pub(super) inbox: Arc<Inbox>,
    /// The inboxes of the endpoints of all workers, by number.
    workers: Arc<[Arc<Inbox>]>,
}

/// The part of an endpoint's state that its mutex guards.
pub(super) struct EndpointState {
    pub(super) proto: marline_proto::Endpoint,
    pub(super) socket: Arc<dyn UdpSocket>,
    pub(super) local: SocketAddr,
    /// By handle.
    pub(super) connections: Vec<Option<Arc<SharedConnection>>>,
    /// The number of entries in `connections` that are not `None`.
    pub(super) live: usize,
    pub(super) server_config: Option<Arc<ServerConfig>>,
    pub(super) client_config: Option<ClientConfig>,
    pub(super) accepted: VecDeque<ConnectionRef>,
    pub(super) accepting: WakerList,
    pub(super) idle: WakerList,
    /// The callers that wait until all CONNECTION_CLOSE are sent.
    pub(super) sending_close: WakerList,
    /// Whether all CONNECTION_CLOSE are sent.
    pub(super) close_sent: bool,
    /// Closed by the application.
    pub(super) closed: bool,
    /// The driver has ended: no datagram is sent or received any more.
    pub(super) driver_ended: bool,
    /// Whether the driver may still read the socket.
    pub(super) is_receiving: bool,
    /// The callers that wait until it does not.
    pub(super) stopping: WakerList,
    /// Where datagrams of connections go that this process does not have.
    pub(super) predecessor: Option<Arc<dyn PassOn>>,
}

impl SharedEndpoint {
    /// The endpoint whose inbox is that of `number` of `workers`.
    pub(super) fn new(
        runtime: Arc<dyn Runtime>,
        state: EndpointState,
        workers: &Arc<[Arc<Inbox>]>,
        number: usize,
    ) -> Self {
        let inbox = Arc::clone(&workers[number]);
        Self {
            runtime,
            signal: Arc::clone(inbox.signal()),
            receives: AtomicBool::new(state.is_receiving),
            state: Mutex::new(state),
            handles: AtomicUsize::new(0),
            awaits_close_sent: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            trouble: Notify::new(),
            inbox,
            workers: Arc::clone(workers),
        }
    }

    pub(super) fn reads_socket(&self) -> bool {
        self.receives.load(Ordering::Acquire)
    }

    /// Has the driver read the socket, or not any more.
    pub(super) fn set_receives(&self, receives: bool) {
        let mut state = self.lock();
        state.is_receiving |= receives;
        self.receives.store(receives, Ordering::Release);
        drop(state);
        self.signal.wake();
    }

    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Acquire)
    }

    /// Wakes the task that migrates the connections, if there is one.
    pub(super) fn notify_watch(&self) {
        if self.is_watched() {
            self.trouble.notify_one();
        }
    }

    /// See [`Endpoint::rebind_to`](super::Endpoint::rebind_to).
    pub(super) fn rebind(&self, socket: Arc<dyn UdpSocket>) -> io::Result<()> {
        let local = socket.local_addr()?;
        let now = self.runtime.now();
        let mut state = self.lock();
        state.socket = socket;
        state.local = local;
        for connection in state.connections.iter().flatten() {
            let mut inner = connection.lock();
            inner.socket = Arc::clone(&state.socket);
            if connection.side.is_client() {
                inner.bound = local;
                inner.proto.rebind(now, local);
                connection.touch(&mut inner);
            }
        }
        drop(state);
        self.signal.wake();
        Ok(())
    }

    /// Leaves a datagram to the endpoint of another worker.
    pub(super) fn pass_to(&self, worker: u8, datagram: PassedDatagram) {
        if let Some(inbox) = self.workers.get(usize::from(worker)) {
            inbox.push(Passed::ByWorker(datagram));
        }
    }

    /// Wakes the workers for which the protocol's endpoint has left orders.
    pub(super) fn wake_ordered(&self, state: &mut EndpointState) {
        while let Some(worker) = state.proto.poll_ordered() {
            if let Some(inbox) = self.workers.get(usize::from(worker)) {
                inbox.order();
            }
        }
    }

    /// Ignores poisoning: after a panic the driver has ended, and the state shows that.
    pub(super) fn lock(&self) -> MutexGuard<'_, EndpointState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection that the protocol's endpoint just made.
    pub(super) fn adopt(
        &self,
        state: &mut EndpointState,
        handle: ConnectionHandle,
        side: Side,
        proto: Box<marline_proto::Connection>,
    ) -> Arc<SharedConnection> {
        let shared = SharedConnection::new(
            proto,
            handle,
            side,
            BoundSocket {
                socket: Arc::clone(&state.socket),
                local: state.local,
            },
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

impl EndpointState {
    pub(super) fn connection(&self, handle: ConnectionHandle) -> Option<&Arc<SharedConnection>> {
        self.connections.get(handle.0)?.as_ref()
    }

    /// Whether connections of clients would be refused.
    pub(super) fn refuses(&self) -> bool {
        self.closed || self.driver_ended
    }

    /// Passes a signal of a connection to the engine of its bundle.
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

    /// Closes the connections that were evicted for new clients, and has those whose clients have resumed their sessions
    /// store what they observed of their paths, so that the new connections can use it.
    pub(super) fn follow_orders(
        &mut self,
        now: Instant,
        queue: &mut VecDeque<Arc<SharedConnection>>,
    ) {
        while let Some(handle) = self.proto.poll_evicted() {
            if let Some(connection) = self.connection(handle) {
                let mut inner = connection.lock();
                inner.proto.evict(now);
                enqueue(queue, connection, &mut inner);
            }
        }
        while let Some(handle) = self.proto.poll_resumed() {
            if let Some(connection) = self.connection(handle) {
                connection.lock().proto.report_resumed(now);
            }
        }
    }

    /// Sets whether the protocol's endpoint accepts connections.
    pub(super) fn apply_server_config(&mut self) {
        let open = !self.refuses() && self.accepted.len() < ACCEPT_BACKLOG;
        let mut config = self.server_config.clone();
        if let Some(config) = &mut config
            && !open
        {
            // Refused rather than ignored, so that the client is notified at once.
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

    /// Removes a connection that is drained.
    pub(super) fn forget(&mut self, handle: ConnectionHandle, woken: &mut Vec<Waker>) {
        let slot = self.connections.get_mut(handle.0);
        if slot.and_then(Option::take).is_some() {
            self.live -= 1;
        }
        if self.is_idle() {
            self.idle.take(woken);
            self.sending_close.take(woken);
        }
    }

    /// The driver has nothing left to send.
    pub(super) fn on_all_sent(&mut self, woken: &mut Vec<Waker>) {
        let mut connections = self.connections.iter().flatten();
        if self.closed && connections.all(|connection| !connection.lock().queued) {
            self.close_sent = true;
            self.sending_close.take(woken);
        }
    }

    /// Whether no connection is left, closing and draining ones included.
    pub(super) fn is_idle(&self) -> bool {
        self.driver_ended || self.live == 0
    }

    /// Ends every connection with `error`, because the driver has ended.
    pub(super) fn on_driver_ended(&mut self, error: &ConnectionError, woken: &mut Vec<Waker>) {
        self.driver_ended = true;
        for connection in self.connections.drain(..).flatten() {
            let mut state = connection.lock();
            state.drained = true;
            state.terminate(error.clone(), woken);
        }
        self.accepting.take(woken);
        self.idle.take(woken);
        self.sending_close.take(woken);
        self.stopping.take(woken);
    }

    /// The driver does not read the socket any more.
    pub(super) fn on_stopped_receiving(&mut self, woken: &mut Vec<Waker>) {
        self.is_receiving = false;
        self.stopping.take(woken);
    }
}
