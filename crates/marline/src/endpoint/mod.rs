//! The application's handle of a socket and its connections.

mod deliver;
mod driver;
mod inbox;
mod incoming;
mod outgoing;
mod state;
mod timers;
mod unanswered;
mod watch;
mod workers;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use marline_proto::{
    ClientConfig, EndpointConfig, EndpointStats, FourTuple, NewConnection, ServerConfig, Side,
    TransportConfig,
};

use self::inbox::Inbox;
pub use self::inbox::{PassOn, PassedDatagram};
use self::state::{EndpointState, SharedEndpoint};
pub(crate) use self::watch::EndpointWatch;
pub use self::workers::Worker;
use crate::connection::{Connecting, Connection, ConnectionRef};
use crate::error::ConnectError;
#[cfg(not(target_family = "wasm"))]
use crate::runtime::TokioRuntime;
use crate::runtime::{Runtime, UdpSocket};
use crate::wakers::WakerList;

/// One UDP socket and its connections. Clones are the same endpoint.
///
/// Dropping the last clone closes all connections with code 0; the endpoint's task sends CONNECTION_CLOSE
/// to the peers and ends.
///
/// A panic in a policy or an observer of the application ends the task, and with it the endpoint: every
/// connection is closed then, and all calls that wait fail.
pub struct Endpoint {
    shared: Arc<SharedEndpoint>,
}

impl Endpoint {
    /// An endpoint that accepts connections at `addr`. If that is unspecified, it answers from the
    /// address that the client sent to.
    ///
    /// # Errors
    /// The socket cannot be bound, or no tokio runtime is running.
    #[cfg(not(target_family = "wasm"))]
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Self> {
        let runtime = Arc::new(TokioRuntime::current()?);
        let socket = runtime.bind(addr)?;
        let seed = EndpointConfig::from_seed(runtime.seed()?);
        Self::new(seed, Some(config), socket, runtime)
    }

    /// An endpoint that only connects, from `addr`: port 0 for any, `[::]` or `0.0.0.0` for any address.
    ///
    /// # Errors
    /// The socket cannot be bound, or no tokio runtime is running.
    #[cfg(not(target_family = "wasm"))]
    pub fn client(addr: SocketAddr) -> io::Result<Self> {
        let runtime = Arc::new(TokioRuntime::current()?);
        let socket = runtime.bind(addr)?;
        let seed = EndpointConfig::from_seed(runtime.seed()?);
        Self::new(seed, None, socket, runtime)
    }

    /// An endpoint with everything chosen by the caller.
    ///
    /// # Errors
    /// The socket has no address.
    pub fn new(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: Arc<dyn UdpSocket>,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        let workers = Arc::new([Arc::new(Inbox::new(Arc::default()))]);
        let proto = |server| marline_proto::Endpoint::new(Arc::new(config), server);
        let receives = true;
        Self::start(
            Worker {
                socket,
                runtime,
                receives,
            },
            server,
            proto,
            &(workers as _),
            0,
        )
    }

    /// Starts the endpoint that is the given `number` of several, whose inboxes are `workers`.
    fn start(
        worker: Worker,
        server: Option<ServerConfig>,
        proto: impl FnOnce(Option<Arc<ServerConfig>>) -> marline_proto::Endpoint,
        workers: &Arc<[Arc<Inbox>]>,
        number: usize,
    ) -> io::Result<Self> {
        let Worker {
            socket,
            runtime,
            receives,
        } = worker;
        let local = socket.local_addr()?;
        let server = server.map(|config| Arc::new(for_server(config, &*socket)));
        let shared = Arc::new(SharedEndpoint::new(
            runtime,
            EndpointState {
                proto: proto(server.clone()),
                socket,
                local,
                connections: Vec::new(),
                live: 0,
                server_config: server,
                client_config: None,
                accepted: VecDeque::new(),
                accepting: WakerList::default(),
                idle: WakerList::default(),
                sending_close: WakerList::default(),
                close_sent: false,
                closed: false,
                driver_ended: false,
                is_receiving: receives,
                stopping: WakerList::default(),
                predecessor: None,
            },
            workers,
            number,
        ));
        let endpoint = Self::from_shared(Arc::clone(&shared));
        let driver = driver::Driver::new(Arc::clone(&shared));
        shared.runtime.spawn(Box::pin(driver));
        Ok(endpoint)
    }

    fn from_shared(shared: Arc<SharedEndpoint>) -> Self {
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self { shared }
    }

    /// The present socket.
    pub(crate) fn socket(&self) -> Arc<dyn UdpSocket> {
        Arc::clone(&self.shared.lock().socket)
    }

    /// The endpoint's runtime.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.shared.runtime
    }

    /// Sets the configuration that [`connect`](Self::connect) uses.
    pub fn set_default_client_config(&self, config: ClientConfig) {
        self.shared.lock().client_config = Some(config);
    }

    /// Sets the configuration of new connections of clients; with `None` the endpoint does not answer
    /// them. Existing connections keep theirs.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        let mut state = self.shared.lock();
        let socket = Arc::clone(&state.socket);
        state.server_config = config.map(|config| Arc::new(for_server(config, &*socket)));
        state.apply_server_config();
    }

    /// Replaces the connection IDs of all connections by new ones, as a new configuration of
    /// [`QuicLb`](marline_proto::QuicLb) requires: see [`renew_connection_ids`](marline_proto::Connection::renew_connection_ids).
    pub fn renew_connection_ids(&self) {
        let state = self.shared.lock();
        for connection in state.connections.iter().flatten() {
            let mut inner = connection.lock();
            inner.proto.renew_connection_ids();
            connection.touch(&mut inner);
        }
        drop(state);
        self.shared.signal.wake();
    }

    /// Ends an idle connection of a client to make room for another one at `ip`, whose address is validated, where a limit
    /// is shared with others than this endpoint. It is chosen as in a server with
    /// [`max_connections`](ServerConfig::max_connections): [`ClientLimits::evict_idle`](marline_proto::ClientLimits::evict_idle).
    /// Returns whether there was one.
    pub fn evict_idle_for(&self, ip: IpAddr) -> bool {
        let mut state = self.shared.lock();
        let found = state.proto.evict_idle_for(ip);
        self.shared.wake_ordered(&mut state);
        drop(state);
        if found {
            self.shared.inbox.order();
        }
        found
    }

    /// Connects to `server_name` at `remote` with the default configuration.
    ///
    /// # Errors
    /// Nothing was sent: see [`ConnectError`].
    pub fn connect(
        &self,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let config = self.shared.lock().client_config.clone();
        self.connect_with(
            config.ok_or(ConnectError::NoClientConfig)?,
            remote,
            server_name,
        )
    }

    /// Connects to `server_name` at `remote`.
    ///
    /// # Errors
    /// Nothing was sent: see [`ConnectError`].
    pub fn connect_with(
        &self,
        config: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.connect_between(config, None, remote, server_name)
    }

    /// Connects to `server_name` at `remote` from the address `local` of this host and from no other: if it
    /// is no longer available, nothing is sent. The endpoint must be bound to an unspecified address, or to
    /// `local`.
    ///
    /// # Errors
    /// Nothing was sent: see [`ConnectError`].
    pub fn connect_from(
        &self,
        config: ClientConfig,
        local: IpAddr,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.connect_between(config, Some(local), remote, server_name)
    }

    fn connect_between(
        &self,
        mut config: ClientConfig,
        from: Option<IpAddr>,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let mut state = self.shared.lock();
        if state.refuses() {
            return Err(ConnectError::EndpointClosed);
        }
        fit_to_socket(&mut config.transport, &*state.socket);
        let mut local = state.local;
        let remote =
            remote_for_socket(local, remote).ok_or(ConnectError::UnreachableFamily(remote))?;
        if let Some(from) = from {
            let is_of_family =
                from.to_canonical().is_ipv4() == remote.ip().to_canonical().is_ipv4();
            if !can_send_from(local, from) || !is_of_family {
                return Err(ConnectError::CannotSendFrom { from, remote });
            }
            local.set_ip(local_for_socket(local, from));
        }
        let tuple = FourTuple { local, remote };
        let now = self.shared.runtime.now();
        let NewConnection {
            handle,
            connection: proto,
        } = state.proto.connect(now, &config, tuple, server_name)?;
        let connection = self
            .shared
            .adopt(&mut state, handle, Side::Client, Box::new(proto));
        let mut inner = connection.lock();
        inner.is_pinned = from.is_some();
        connection.touch(&mut inner);
        drop(inner);
        self.shared.notify_watch();
        Ok(connecting(ConnectionRef::new(connection)))
    }

    /// The next connection of a client, whose handshake is in progress; `None` when the endpoint is closed.
    /// Safe to cancel.
    pub async fn accept(&self) -> Option<Connecting> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// [`accept`](Self::accept) for hand-written futures.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Option<Connecting>> {
        let mut state = self.shared.lock();
        if let Some(connection) = state.pop_accepted() {
            return Poll::Ready(Some(connecting(connection)));
        }
        if state.refuses() {
            return Poll::Ready(None);
        }
        state.accepting.register(cx.waker());
        Poll::Pending
    }

    /// Closes all connections with `code` and `reason`, and accepts and makes no more.
    ///
    /// CONNECTION_CLOSE is sent in the background: call [`wait_close_sent`](Self::wait_close_sent) or
    /// [`wait_idle`](Self::wait_idle) before the program ends.
    pub fn close(&self, code: u64, reason: &[u8]) {
        let mut woken = Vec::new();
        let mut state = self.shared.lock();
        if std::mem::replace(&mut state.closed, true) {
            return;
        }
        state.apply_server_config();
        for connection in state.connections.iter().flatten() {
            connection.close(code, reason);
        }
        let unaccepted = std::mem::take(&mut state.accepted);
        state.accepting.take(&mut woken);
        drop(state);
        drop(unaccepted);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Waits until the endpoint is [closed](Self::close) and the socket has taken every CONNECTION_CLOSE. A program that
    /// ends then leaves out the closing period: a CONNECTION_CLOSE that is lost is not repeated, and the peer's
    /// connection ends by its idle timeout (RFC 9000, section 10.2.1).
    pub async fn wait_close_sent(&self) {
        let mut has_asked = false;
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if state.close_sent || (state.closed && state.is_idle()) {
                return Poll::Ready(());
            }
            state.sending_close.register(cx.waker());
            drop(state);
            if !std::mem::replace(&mut has_asked, true) {
                self.shared.awaits_close_sent.store(true, Ordering::Release);
                // All may have been sent before, and the driver asleep since.
                self.shared.signal.wake();
            }
            Poll::Pending
        })
        .await;
    }

    /// Waits until no connection is left, closed ones included: the closing period lasts three probe
    /// timeouts (RFC 9000, section 10.2).
    pub async fn wait_idle(&self) {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if state.is_idle() {
                return Poll::Ready(());
            }
            state.idle.register(cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// The address that the socket is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.lock().local
    }

    /// The number of connections, closing and draining ones included.
    pub fn open_connections(&self) -> usize {
        self.shared.lock().proto.open_connections()
    }

    /// Counters of new clients: connections accepted and evicted, handshakes, refusals.
    pub fn stats(&self) -> EndpointStats {
        self.shared.lock().proto.stats()
    }

    /// The socket as another process can use it: a handle of the same, with the datagrams that wait in it.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::Unsupported`] where sockets are not those of the system.
    pub fn duplicate_socket(&self) -> io::Result<std::net::UdpSocket> {
        self.socket().duplicate()
    }

    /// Moves to another socket: the connections of this client migrate (RFC 9000, section 9), with all their
    /// paths. What still arrives at the old socket is read, and its probes answered there, until the new one works.
    /// Paths from several addresses keep these only if the socket is bound to an unspecified one.
    ///
    /// # Errors
    /// The runtime cannot use the socket; nothing has changed.
    pub fn rebind(&self, socket: std::net::UdpSocket) -> io::Result<()> {
        self.rebind_to(self.shared.runtime.wrap(socket)?)
    }

    /// [`rebind`](Self::rebind) to a socket of the runtime.
    ///
    /// # Errors
    /// The socket has no address; nothing has changed.
    pub fn rebind_to(&self, socket: Arc<dyn UdpSocket>) -> io::Result<()> {
        self.shared.rebind(socket)
    }
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        Self::from_shared(Arc::clone(&self.shared))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.shared.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close(0, b"");
            self.shared.signal.wake();
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local", &self.local_addr())
            .finish_non_exhaustive()
    }
}

fn connecting(connection: ConnectionRef) -> Connecting {
    Connecting::new(Connection::new(connection))
}

fn for_server(mut config: ServerConfig, socket: &dyn UdpSocket) -> ServerConfig {
    fit_to_socket(&mut config.transport, socket);
    config
}

/// Disables MTU discovery where probes may be fragmented, so that their arrival proves nothing. Gathers packets where one call sends
/// several.
fn fit_to_socket(transport: &mut Arc<TransportConfig>, socket: &dyn UdpSocket) {
    if transport.send_gather != socket.send_gather() {
        Arc::make_mut(transport).send_gather = socket.send_gather();
    }
    if socket.may_fragment() && transport.mtu.discover {
        Arc::make_mut(transport).mtu.discover = false;
    }
}

/// Whether a socket bound to `bound` can send from the address `local`.
pub(crate) fn can_send_from(bound: SocketAddr, local: IpAddr) -> bool {
    bound.ip().to_canonical().is_unspecified() || bound.ip().to_canonical() == local.to_canonical()
}

/// The address `local` in the form that a socket bound to `bound` uses: a dual-stack socket maps IPv4 into
/// IPv6.
pub(crate) fn local_for_socket(bound: SocketAddr, local: IpAddr) -> IpAddr {
    match local.to_canonical() {
        IpAddr::V4(local) if bound.is_ipv6() => local.to_ipv6_mapped().into(),
        local => local,
    }
}

/// `remote` as a socket at `local` can address it: a dual-stack socket maps IPv4 into IPv6.
pub(crate) fn remote_for_socket(local: SocketAddr, remote: SocketAddr) -> Option<SocketAddr> {
    match (local.ip(), remote.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => Some(remote),
        (IpAddr::V6(ip), IpAddr::V4(remote_ip)) if ip == Ipv6Addr::UNSPECIFIED => Some(
            SocketAddr::new(remote_ip.to_ipv6_mapped().into(), remote.port()),
        ),
        _ => None,
    }
}
