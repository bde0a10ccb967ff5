//! An endpoint, which routes datagrams to connections, and accepts or starts connections.
//!
//! | subject | file |
//! | --- | --- |
//! | routing of datagrams to connections | `route` |
//! | acceptance of new connections | `accept` |
//! | connections per client network | `clients` |
//! | bundles of connections | `bundles` |
//! | state shared with the endpoints of other workers | `group` |
//! | earlier connections of clients | `earlier` |
//! | eviction of idle connections | `evict` |
//! | stateless responses | `stateless` |

mod accept;
mod bundles;
mod clients;
mod earlier;
mod evict;
mod group;
mod route;
mod stateless;
mod stats;

pub use group::WorkerGroup;
pub use stats::{EndpointStats, Refusals};

use std::net::SocketAddr;
use std::sync::Arc;

use marline_wire::ConnectionId;
use slab::Slab;

use crate::config::{ClientConfig, EndpointConfig, ServerConfig};
use crate::connection::{Connection, EndpointEvent};
use crate::handshake::ConnectError;
use crate::rng::SecureRng;
use crate::time::Instant;
use crate::tuple::FourTuple;

use bundles::Bundles;
use clients::ClientId;
use route::Routes;

/// Identifies a connection within its endpoint. Numbers are reused after a connection is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionHandle(pub usize);

/// The handling of a datagram.
#[derive(Debug)]
pub enum Route {
    /// Pass it to this connection: [`Connection::handle_datagram`].
    Connection(ConnectionHandle),
    /// A new connection of a client was accepted, and has processed the datagram.
    Accepted(ConnectionHandle, Box<Connection>),
    /// Send the reply to the source of the datagram.
    Reply,
    /// Pass it on to the endpoint of another worker of the [`WorkerGroup`]: [`Endpoint::route_passed`].
    Worker(u8),
    /// Pass it on to the server that had this address before: [`Endpoint::set_has_predecessor`].
    Predecessor,
    /// Drop it.
    Drop,
}

/// A connection started by an endpoint; its owner drives it from now on.
#[derive(Debug)]
pub struct NewConnection {
    /// Its handle at the endpoint.
    pub handle: ConnectionHandle,
    /// The connection itself.
    pub connection: Connection,
}

/// The endpoint's state of a connection.
#[derive(Debug)]
struct Entry {
    /// Destination connection ID of a client's first packets, until the handshake is complete.
    original_destination: Option<ConnectionId>,
    ids: Vec<ConnectionId>,
    reset_tokens: Vec<[u8; 16]>,
    remote: SocketAddr,
    handshaking: bool,
    /// Its number in the counts, if a client started it.
    client: Option<ClientId>,
}

/// Routes datagrams to connections, and creates connections, without owning them.
pub struct Endpoint {
    config: Arc<EndpointConfig>,
    server: Option<Arc<ServerConfig>>,
    entries: Slab<Entry>,
    routes: Routes,
    rng: SecureRng,
    /// Handshakes in progress that clients started.
    handshakes: usize,
    bundles: Bundles,
    group: Arc<WorkerGroup>,
    /// The number of its worker in the group.
    worker: u8,
    /// Workers for which there are orders that were not polled.
    ordered: Vec<u8>,
    has_predecessor: bool,
    stats: EndpointStats,
}

impl Endpoint {
    /// Creates an endpoint; it accepts connections if there is a `server` configuration.
    pub fn new(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Self {
        Self::in_group(config, server, Arc::new(WorkerGroup::new(1)))
    }

    /// Creates the endpoint of the worker [`EndpointConfig::worker`] in `group`. The configurations of all have equal keys,
    /// connection IDs of one length of at least [`WORKER_ID_LEN`](crate::WORKER_ID_LEN) bytes, and different seeds.
    pub fn in_group(
        config: Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
        group: Arc<WorkerGroup>,
    ) -> Self {
        let rng = SecureRng::from_seed(config.rng_seed);
        Self {
            routes: Routes::new(config.id_len()),
            worker: config.worker.unwrap_or(0),
            config,
            server,
            entries: Slab::new(),
            rng,
            handshakes: 0,
            bundles: Bundles::default(),
            group,
            ordered: Vec::new(),
            has_predecessor: false,
            stats: EndpointStats::default(),
        }
    }

    /// Replaces the server configuration for further connections; with `None`, none are accepted.
    pub fn set_server_config(&mut self, server: Option<Arc<ServerConfig>>) {
        self.server = server;
    }

    /// Sets whether another process had this address before and still has connections: [`Route::Predecessor`] is then the
    /// handling of datagrams of connections that no endpoint of the group knows. They are not answered here.
    pub fn set_has_predecessor(&mut self, has_predecessor: bool) {
        self.has_predecessor = has_predecessor;
    }

    /// Number of connections that are not drained.
    pub fn open_connections(&self) -> usize {
        self.entries.len()
    }

    /// The endpoint's counters.
    pub fn stats(&self) -> EndpointStats {
        EndpointStats {
            handshakes: self.handshakes,
            ..self.stats
        }
    }

    /// Number of connection IDs that are routed to a connection.
    #[cfg(test)]
    pub(crate) fn routes_of_ids(&self) -> usize {
        self.routes.ids()
    }

    /// Starts a connection to `server_name` at the tuple's remote address.
    ///
    /// # Errors
    ///
    /// If the name or the TLS configuration is invalid.
    pub fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        tuple: FourTuple,
        server_name: &str,
    ) -> Result<NewConnection, ConnectError> {
        let rng = self.rng.fork();
        let endpoint = Arc::clone(&self.config);
        let mut connection = Connection::connect(now, endpoint, config, tuple, server_name, rng)?;
        self.group.lock().connections += 1;
        let handle = self.insert(None, connection.handshake_cid(), tuple.remote, None);
        self.drain_events(handle, &mut connection);
        Ok(NewConnection { handle, connection })
    }

    /// Processes an event from a connection's
    /// [`poll_endpoint_event`](Connection::poll_endpoint_event).
    pub fn on_connection_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        let at = self.at(handle);
        let Some(entry) = self.entries.get_mut(handle.0) else {
            return;
        };
        match event {
            EndpointEvent::Issued(id) => {
                entry.ids.push(id);
                self.routes.add(id, handle);
            }
            EndpointEvent::Retired(id) => {
                entry.ids.retain(|known| *known != id);
                self.routes.remove(&id);
            }
            EndpointEvent::ResetTokenAdded(token) => {
                entry.reset_tokens.push(token);
                self.group.lock().reset_tokens.insert(token, at);
            }
            EndpointEvent::ResetTokenRemoved(token) => {
                entry.reset_tokens.retain(|known| *known != token);
                self.group.lock().reset_tokens.remove(&token);
            }
            EndpointEvent::HandshakeDone => {
                let mut state = self.group.lock();
                if std::mem::take(&mut entry.handshaking) {
                    self.handshakes -= 1;
                    state.handshakes -= 1;
                    state.earlier.on_established(entry.remote.ip(), at);
                }
                if let Some(client) = entry.client {
                    state.clients.on_connected(client);
                }
                if let Some(id) = entry.original_destination.take() {
                    self.routes.remove_initial(&id, entry.remote);
                }
            }
            EndpointEvent::Resumed => {
                let client = entry.remote.ip();
                let group = Arc::clone(&self.group);
                let mut state = group.lock();
                if let Some(earlier) = state.earlier.latest(client) {
                    self.order_report(&mut state, earlier);
                }
            }
            EndpointEvent::Idle(is_idle) => {
                if let Some(client) = entry.client {
                    self.group.lock().clients.set_idle(client, at, is_idle);
                }
            }
            EndpointEvent::JoinBundle(join) => self.bundles.join(handle, *join),
            // Needs the state of the other members, which `coordinate` provides.
            EndpointEvent::Bundle(_) => {}
            EndpointEvent::Drained => self.forget(handle),
        }
    }

    /// Adds a connection, which the group counts already, as it does its `client`.
    fn insert(
        &mut self,
        original_destination: Option<ConnectionId>,
        id: ConnectionId,
        remote: SocketAddr,
        client: Option<ClientId>,
    ) -> ConnectionHandle {
        let handshaking = client.is_some();
        let entry = Entry {
            original_destination,
            ids: vec![id],
            reset_tokens: Vec::new(),
            remote,
            handshaking,
            client,
        };
        let handle = ConnectionHandle(self.entries.insert(entry));
        self.routes.add(id, handle);
        if let Some(original) = original_destination {
            self.routes.add_initial(original, remote, handle);
        }
        self.handshakes += usize::from(handshaking);
        handle
    }

    fn forget(&mut self, handle: ConnectionHandle) {
        let at = self.at(handle);
        let Some(entry) = self.entries.try_remove(handle.0) else {
            return;
        };
        self.bundles.leave(handle);
        self.handshakes -= usize::from(entry.handshaking);
        entry.ids.iter().for_each(|id| self.routes.remove(id));
        if let Some(id) = entry.original_destination {
            self.routes.remove_initial(&id, entry.remote);
        }
        let mut state = self.group.lock();
        state.connections -= 1;
        state.handshakes -= usize::from(entry.handshaking);
        state.earlier.on_drained(entry.remote.ip(), at);
        if let Some(client) = entry.client {
            state.clients.remove(client);
        }
        state.evictions.on_drained(at);
        state.forget_orders(at);
        for token in &entry.reset_tokens {
            state.reset_tokens.remove(token);
        }
    }

    /// Processes the events of a new connection before its owner receives it.
    fn drain_events(&mut self, handle: ConnectionHandle, connection: &mut Connection) {
        while let Some(event) = connection.poll_endpoint_event() {
            self.on_connection_event(handle, event);
        }
    }

    fn new_connection_id(&mut self) -> ConnectionId {
        self.config.connection_id(&mut self.rng)
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.entries.len())
            .field("handshakes", &self.handshakes)
            .finish_non_exhaustive()
    }
}
