//! Two endpoints, a network between them, and virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::TestIdentity;
use super::network::{Datagram, Direction, Network};
use crate::config::{ClientConfig, ClientLimits, EndpointConfig, ServerConfig, TransportConfig};
use crate::connection::{Connection, EndpointEvent, Event};
use crate::coordination::bundle::MemberDirective;
use crate::crypto::QuicLb;
use crate::endpoint::{ConnectionHandle, Endpoint, NewConnection, Route};
use crate::handshake::{Cipher, TlsClientConfig, TlsServerConfig};
use crate::time::Instant;
use crate::tuple::FourTuple;

/// Maximum number of datagrams in one batch of an endpoint.
const BATCH: usize = 16;

/// The name in the certificate of a [`Pair`]'s server.
pub const SERVER_NAME: &str = "server.test";

/// The application protocol of both ends of a [`Pair`].
pub const ALPN: &[u8] = b"test";

/// One endpoint with its connections.
pub struct Node {
    /// Endpoint.
    pub endpoint: Endpoint,
    /// Connections by handle.
    pub connections: BTreeMap<ConnectionHandle, Connection>,
    /// Address of the node.
    pub address: SocketAddr,
    /// Handles of client connections not yet taken, in order.
    pub accepted: VecDeque<ConnectionHandle>,
    /// Wall clock, in seconds since the Unix epoch, which does not advance by itself.
    pub unix_time_s: u64,
    /// Events of its connections, oldest first.
    pub events: VecDeque<(ConnectionHandle, Event)>,
    reply: Vec<u8>,
    buf: Vec<u8>,
    /// Events for the endpoint, not processed yet.
    endpoint_events: Vec<(ConnectionHandle, EndpointEvent)>,
}

impl Node {
    fn new(endpoint: Endpoint, address: &str) -> Self {
        Self {
            endpoint,
            connections: BTreeMap::new(),
            address: address.parse().expect("a literal address"),
            accepted: VecDeque::new(),
            unix_time_s: 0,
            events: VecDeque::new(),
            reply: Vec::new(),
            buf: Vec::new(),
            endpoint_events: Vec::new(),
        }
    }

    /// Routes a datagram to a connection, or answers it.
    fn receive(&mut self, now: Instant, datagram: &mut Datagram, network: &mut Network) {
        let tuple = FourTuple {
            local: datagram.destination,
            remote: datagram.source,
        };
        let bytes = &mut datagram.bytes;
        let route = self.endpoint.route(
            now,
            self.unix_time_s,
            tuple,
            datagram.ecn,
            bytes,
            &mut self.reply,
        );
        match route {
            Route::Connection(handle) => {
                if let Some(connection) = self.connections.get_mut(&handle) {
                    connection.handle_datagram(now, tuple, datagram.ecn, bytes);
                }
            }
            Route::Accepted(handle, connection) => {
                self.connections.insert(handle, *connection);
                self.accepted.push_back(handle);
                while let Some(evicted) = self.endpoint.poll_evicted() {
                    if let Some(connection) = self.connections.get_mut(&evicted) {
                        connection.evict(now);
                    }
                }
                report_resumed(now, &mut self.endpoint, &mut self.connections);
            }
            Route::Reply => {
                let bytes = std::mem::take(&mut self.reply);
                network.send(
                    now,
                    Datagram {
                        source: tuple.local,
                        destination: tuple.remote,
                        ecn: None,
                        bytes,
                    },
                );
            }
            Route::Drop | Route::Worker(_) | Route::Predecessor => {}
        }
    }

    /// Sends the pending packets of every connection, processes their events, and repeats that while
    /// directives of bundles cause more.
    fn flush(&mut self, now: Instant, network: &mut Network) {
        loop {
            self.transmit(now, network);
            if !self.coordinate(now) {
                break;
            }
        }
        if self.connections.values().any(Connection::is_drained) {
            self.connections
                .retain(|_, connection| !connection.is_drained());
        }
    }

    /// Passes events of connections to the endpoint; returns whether a connection received a directive.
    fn coordinate(&mut self, now: Instant) -> bool {
        let mut applied = false;
        for (handle, event) in self.endpoint_events.drain(..) {
            let connections = &self.connections;
            let mut view = |member| connections.get(&member).map(Connection::member_view);
            match event {
                EndpointEvent::Bundle(signal) => {
                    self.endpoint.coordinate(now, handle, signal, &mut view);
                }
                event => self.endpoint.on_connection_event(handle, event),
            }
            report_resumed(now, &mut self.endpoint, &mut self.connections);
            while let Some(MemberDirective { member, directive }) = self.endpoint.poll_directive() {
                if let Some(connection) = self.connections.get_mut(&member) {
                    connection.apply_directive(now, &directive);
                    applied = true;
                }
            }
        }
        applied
    }

    /// Sends the datagrams of all connections and collects their events.
    fn transmit(&mut self, now: Instant, network: &mut Network) {
        for (&handle, connection) in &mut self.connections {
            while let Some(transmit) = connection.poll_transmit(now, BATCH, &mut self.buf) {
                let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
                for bytes in self.buf[..transmit.size].chunks(segment) {
                    network.send(
                        now,
                        Datagram {
                            source: transmit.tuple.local,
                            destination: transmit.tuple.remote,
                            ecn: transmit.ecn,
                            bytes: bytes.to_vec(),
                        },
                    );
                }
                self.buf.clear();
            }
            while let Some(event) = connection.poll_event() {
                self.events.push_back((handle, event));
            }
            while let Some(event) = connection.poll_endpoint_event() {
                self.endpoint_events.push((handle, event));
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.connections
            .values()
            .filter_map(Connection::poll_timeout)
            .min()
    }

    fn handle_timeouts(&mut self, now: Instant) {
        for connection in self.connections.values_mut() {
            if connection
                .poll_timeout()
                .is_some_and(|timeout| timeout <= now)
            {
                connection.handle_timeout(now);
            }
        }
    }
}

/// The setup of a [`Pair`].
pub struct PairConfig {
    /// Configuration of the client's connections.
    pub client: TransportConfig,
    /// Configuration of the server's connections.
    pub server: TransportConfig,
    /// Changes to the server, after its defaults.
    pub adjust_server: Box<dyn FnOnce(&mut ServerConfig)>,
    /// Whether the server accepts 0-RTT.
    pub zero_rtt: bool,
    /// Limits on clients of one network.
    pub clients: ClientLimits,
    /// The server's only cipher; `None` offers all.
    pub cipher: Option<Cipher>,
    /// Number of names in the certificate besides [`SERVER_NAME`], to make it long.
    pub further_names: usize,
    /// Length of the client's connection IDs, in bytes.
    pub client_id_len: usize,
    /// Length of the server's connection IDs, in bytes.
    pub server_id_len: usize,
    /// The server's connection IDs behind a load balancer.
    pub quic_lb: Option<Arc<QuicLb>>,
    /// Seed of all randomness except that of TLS.
    pub seed: u64,
}

/// The handles of one connection at its two ends.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Handle at the client.
    pub client: ConnectionHandle,
    /// Handle at the server.
    pub server: ConnectionHandle,
}

impl Default for PairConfig {
    fn default() -> Self {
        Self {
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            adjust_server: Box::new(|_| {}),
            zero_rtt: false,
            clients: ClientLimits::default(),
            cipher: None,
            further_names: 0,
            client_id_len: 8,
            server_id_len: 8,
            quic_lb: None,
            seed: 1,
        }
    }
}

/// A client endpoint and a server endpoint over a [`Network`], in virtual time.
pub struct Pair {
    /// Current time.
    pub now: Instant,
    /// Client endpoint.
    pub client: Node,
    /// Server endpoint.
    pub server: Node,
    /// The network between them.
    pub network: Network,
    /// Configuration of further connections of the client.
    pub client_config: ClientConfig,
    /// Configuration of the server; [`Self::reconfigure_server`] changes it.
    server_config: ServerConfig,
    server_tls: rustls::ServerConfig,
    seed: u64,
    server_endpoint: Arc<EndpointConfig>,
}

impl Pair {
    /// A pair with default settings and a network of 10 ms each way.
    pub fn new() -> Self {
        Self::with(PairConfig::default())
    }

    /// A pair with the setup `config`.
    ///
    /// # Panics
    ///
    /// Never: the test certificate fits.
    pub fn with(config: PairConfig) -> Self {
        let further: Vec<String> = (0..config.further_names)
            .map(|n| format!("number-{n:05}.{SERVER_NAME}"))
            .collect();
        let names: Vec<&str> = std::iter::once(SERVER_NAME)
            .chain(further.iter().map(String::as_str))
            .collect();
        let identity = TestIdentity::new(&names);
        let mut server_tls = identity.server(&[ALPN], config.cipher);
        server_tls.max_early_data_size = if config.zero_rtt { u32::MAX } else { 0 };
        let mut client_tls = identity.client(&[ALPN], None);
        client_tls.enable_early_data = config.zero_rtt;
        let mut server = ServerConfig::new(quic_tls(&server_tls));
        server.transport = Arc::new(config.server);
        (config.adjust_server)(&mut server);
        let tls = TlsClientConfig::new(Arc::new(client_tls)).expect("the test settings fit QUIC");
        let mut client_config = ClientConfig::new(tls);
        client_config.transport = Arc::new(config.client);
        let client_endpoint = EndpointConfig {
            connection_id_len: config.client_id_len,
            clients: config.clients,
            ..endpoint_config(1, config.seed)
        };
        let server_endpoint = Arc::new(EndpointConfig {
            connection_id_len: config.server_id_len,
            quic_lb: config.quic_lb,
            clients: config.clients,
            ..endpoint_config(2, config.seed)
        });
        let client = Endpoint::new(Arc::new(client_endpoint), None);
        let client = Node::new(client, "192.0.2.1:50000");
        let accepting = Some(Arc::new(server.clone()));
        Self {
            now: Instant::from_nanos(1_000_000_000),
            network: Network::new(config.seed, client.address),
            client,
            server: Node::new(
                Endpoint::new(Arc::clone(&server_endpoint), accepting),
                "192.0.2.2:443",
            ),
            client_config,
            server_config: server,
            server_tls,
            seed: config.seed,
            server_endpoint,
        }
    }

    /// Changes the server's configuration for later connections. TLS settings can be changed too; session
    /// tickets stay valid unless `change` replaces their key or storage.
    ///
    /// # Panics
    ///
    /// If the TLS settings do not fit QUIC.
    pub fn reconfigure_server(
        &mut self,
        change: impl FnOnce(&mut ServerConfig, &mut rustls::ServerConfig),
    ) {
        change(&mut self.server_config, &mut self.server_tls);
        self.server_config.tls = quic_tls(&self.server_tls);
        let config = Arc::new(self.server_config.clone());
        self.server.endpoint.set_server_config(Some(config));
    }

    /// Restarts the server with the same keys, without a CONNECTION_CLOSE for its connections.
    pub fn restart_server(&mut self) {
        let config = Arc::clone(&self.server_endpoint);
        let accepting = Some(Arc::new(self.server_config.clone()));
        self.server = Node {
            address: self.server.address,
            ..Node::new(Endpoint::new(config, accepting), "192.0.2.2:443")
        };
    }

    /// Starts a connection; returns the client's handle.
    ///
    /// # Panics
    ///
    /// Never: the name is valid.
    pub fn connect(&mut self) -> ConnectionHandle {
        let tuple = FourTuple {
            local: self.client.address,
            remote: self.server.address,
        };
        let NewConnection { handle, connection } = self
            .client
            .endpoint
            .connect(self.now, &self.client_config, tuple, SERVER_NAME)
            .expect("the test settings connect");
        self.client.connections.insert(handle, connection);
        handle
    }

    /// Connects and runs both ends until the handshake is confirmed; returns both handles.
    ///
    /// # Panics
    ///
    /// If that takes more than a minute.
    pub fn establish(&mut self) -> Ends {
        let client = self.connect();
        let confirmed = |pair: &mut Self| {
            pair.client.events.iter().any(|(handle, event)| {
                *handle == client && matches!(event, Event::HandshakeConfirmed)
            })
        };
        assert!(
            self.drive_until(Duration::from_secs(60), confirmed),
            "no handshake"
        );
        let server = self
            .server
            .accepted
            .pop_front()
            .expect("the server accepted");
        Ends { client, server }
    }

    /// The client's connection.
    ///
    /// # Panics
    ///
    /// If the connection is drained.
    pub fn client(&mut self, handle: ConnectionHandle) -> &mut Connection {
        self.client
            .connections
            .get_mut(&handle)
            .expect("the client's connection is not drained")
    }

    /// The server's connection.
    ///
    /// # Panics
    ///
    /// If the connection is drained.
    pub fn server(&mut self, handle: ConnectionHandle) -> &mut Connection {
        self.server
            .connections
            .get_mut(&handle)
            .expect("the server's connection is not drained")
    }

    /// Delivers a datagram immediately, as if the other end had sent it.
    pub fn deliver(&mut self, direction: Direction, bytes: Vec<u8>) {
        let client = self.client.address;
        match direction {
            Direction::ToServer => self.deliver_from(client, bytes),
            Direction::ToClient => {
                let mut datagram = Datagram {
                    source: self.server.address,
                    destination: client,
                    ecn: None,
                    bytes,
                };
                self.client
                    .receive(self.now, &mut datagram, &mut self.network);
            }
        }
    }

    /// Delivers a datagram to the server immediately, with `source` as its source address.
    pub fn deliver_from(&mut self, source: SocketAddr, bytes: Vec<u8>) {
        let mut datagram = Datagram {
            source,
            destination: self.server.address,
            ecn: None,
            bytes,
        };
        self.server
            .receive(self.now, &mut datagram, &mut self.network);
    }

    /// Moves the client to another address, without a NAT.
    pub fn migrate(&mut self, handle: ConnectionHandle, to: SocketAddr) {
        self.client.address = to;
        self.network.move_inside(to);
        if let Some(connection) = self.client.connections.get_mut(&handle) {
            connection.rebind(self.now, to);
        }
    }

    /// Makes a NAT assign the client another address; the client is not notified.
    pub fn rebind_nat(&mut self, outside: SocketAddr) {
        self.network.nat = Some(outside);
    }

    /// Sends the pending packets of both ends.
    pub fn flush(&mut self) {
        self.client.flush(self.now, &mut self.network);
        self.server.flush(self.now, &mut self.network);
    }

    /// Advances the time to the next arrival or timeout, but not beyond `until`; `false` if there is none.
    pub fn step(&mut self, until: Instant) -> bool {
        self.flush();
        let next = [
            self.network.next_arrival(),
            self.client.next_timeout(),
            self.server.next_timeout(),
        ]
        .into_iter()
        .flatten()
        .min();
        let Some(next) = next.filter(|&next| next <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(next);
        while let Some((direction, mut datagram)) = self.network.pop(self.now) {
            let node = match direction {
                Direction::ToServer => &mut self.server,
                Direction::ToClient => &mut self.client,
            };
            node.receive(self.now, &mut datagram, &mut self.network);
        }
        self.client.handle_timeouts(self.now);
        self.server.handle_timeouts(self.now);
        self.flush();
        true
    }

    /// Advances the time by `time`.
    pub fn drive(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// Advances the time until `done` returns `true`, by at most `time`; returns whether it did.
    pub fn drive_until(&mut self, time: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.now + time;
        loop {
            if done(self) {
                return true;
            }
            if !self.step(until) {
                return done(self);
            }
        }
    }
}

/// Makes open connections whose client resumed report their window to the history.
fn report_resumed(
    now: Instant,
    endpoint: &mut Endpoint,
    connections: &mut BTreeMap<ConnectionHandle, Connection>,
) {
    while let Some(handle) = endpoint.poll_resumed() {
        if let Some(connection) = connections.get_mut(&handle) {
            connection.report_resumed(now);
        }
    }
}

fn quic_tls(tls: &rustls::ServerConfig) -> TlsServerConfig {
    TlsServerConfig::new(Arc::new(tls.clone())).expect("the test settings fit QUIC")
}

fn endpoint_config(side: u8, seed: u64) -> EndpointConfig {
    let mut bytes = [side; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    EndpointConfig::from_seed(bytes)
}

impl Drop for Pair {
    /// Prints the seed if the test failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the pair had seed {}", self.seed);
        }
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}
