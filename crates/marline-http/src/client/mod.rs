//! A client that fetches objects completely, or reports what is missing.
//!
//! [`Client::fetch`] fetches many URLs over several connections; [`Client::connect`] returns one connection
//! for single requests, and [`Client::service`] a service of [`tower`] for requests to any origin, with [`layers`] for
//! redirects, cookies and the like.

mod address;
mod alt_svc;
mod assignment;
mod certificate;
mod config;
mod connection;
mod cookies;
mod date;
mod decode;
mod error;
mod fallback;
mod fetch;
mod file_name;
mod form;
mod hsts;
pub mod layers;
mod message;
mod network;
mod origins;
mod pace;
mod plan;
mod pool;
mod pooled;
mod progress;
mod proxies;
mod range;
mod redirect;
mod refusals;
mod report;
mod response;
mod retry;
mod save;
mod split;
mod stall;
mod target;
#[cfg(feature = "testing")]
pub mod testing;
mod trusted;
mod upload;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use self::alt_svc::AltServices;
pub use self::assignment::{Alternation, AssignedSession, Assignment};
pub use self::certificate::CertificateProblem;
pub use self::config::{ClientConfig, HttpVersion, Trust};
pub use self::connection::Connection;
pub(crate) use self::connection::OpenStream;
use self::connection::{QuicClient, TcpClient};
pub use self::cookies::CookieJar;
pub use self::decode::Decoding;
pub use self::error::ClientError;
use self::fallback::Fallback;
pub use self::fetch::{Destination, FetchOptions, Target};
pub use self::form::{Form, FormField};
pub use self::hsts::Hsts;
pub use self::message::{Credentials, Message};
use self::network::Server;
pub use self::network::{ConnectTo, Family, Local, Network, Resolve};
pub use self::pace::LowSpeed;
pub use self::plan::{PlannedRequest, Planner, SplitPolicy};
pub(crate) use self::pool::{Assigned, Pool};
pub(crate) use self::pooled::{Answer, PooledConnection};
pub use self::progress::Progress;
pub use self::proxies::{HttpProxy, NoProxy, Proxies, ProxyError};
pub use self::redirect::{Redirects, WithoutUser, without_user};
pub use self::report::{
    ConnectionReport, Exchange, ObjectReport, PathReport, Report, ServerCertificates,
};
pub use self::response::Download;
pub use self::retry::Retry;
pub use self::split::Ranges;
pub(crate) use self::split::{Object, Outcome, Split, Store};
pub(crate) use self::stall::Stalled;
pub use self::target::{Origin, ParsedUrl, Schemes, parse as parse_url};
pub use self::upload::{Upload, UploadPart};
use crate::limits::{self, MAX_POOLS};
use crate::pipes::{ObjectKind, PipeReport};
use crate::runtime::RuntimeHandle;

/// Opens connections of one version of HTTP. TLS sessions are kept for resumption.
pub struct Client {
    config: ClientConfig,
    runtime: RuntimeHandle,
    transport: Transport,
    /// The replacement for QUIC, if there may be one.
    fallback: Option<Fallback>,
    /// The transport of `http` URLs where others are encrypted; it needs tokio.
    cleartext: Option<Transport>,
    ids: AtomicU64,
    /// Pooled connections that were opened in advance or kept, for the next fetch.
    spare: Mutex<Vec<OriginConnections>>,
    /// Pools of pipes, by origin.
    pools: Mutex<HashMap<Origin, Arc<Pool>>>,
}

/// Pooled connections to one origin.
struct OriginConnections {
    origin: Origin,
    pooled_connections: Vec<Arc<PooledConnection>>,
}

/// A connection to open.
#[derive(Clone, Copy)]
struct ConnectRequest<'a> {
    id: u64,
    origin: &'a Origin,
    /// The addresses of the origin, in the order in which they are tried.
    addresses: &'a [SocketAddr],
    /// The number of connections to the origin that are used together.
    connections: usize,
    /// Addresses that are tried before over QUIC, which the origin has named.
    alternative: &'a [SocketAddr],
    /// The proxy whose addresses these are.
    proxy: Option<&'a HttpProxy>,
}

enum Transport {
    Tcp(TcpClient),
    Quic(QuicClient),
}

impl Client {
    /// A client without connections.
    ///
    /// # Errors
    /// [`ClientError::Trust`]: the trust anchors cannot be read. [`ClientError::Runtime`]: there is no
    /// runtime.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let runtime = RuntimeHandle::new(config.runtime.clone()).map_err(ClientError::Runtime)?;
        let (transport, fallback) = match config.version {
            HttpVersion::Http11Cleartext => {
                let tcp = TcpClient::new(&config, None, runtime.clone())?;
                (Transport::Tcp(tcp), None)
            }
            HttpVersion::Http11 | HttpVersion::Http2 => {
                let verifier = config.verifier()?;
                let tcp = TcpClient::new(&config, Some(verifier), runtime.clone())?;
                (Transport::Tcp(tcp), None)
            }
            HttpVersion::Http3 => {
                // Trusted certificates take most of the time of a start: both transports have one set.
                let verifier = config.verifier()?;
                let quic = QuicClient::new(&config, Arc::clone(&verifier), runtime.clone())?;
                let fallback = (config.falls_back() && runtime.has_tokio())
                    .then(|| Fallback::new(&config.over_http2(), verifier, runtime.clone()));
                (Transport::Quic(quic), fallback.transpose()?)
            }
        };
        let cleartext = match config.version {
            HttpVersion::Http11Cleartext => None,
            _ if !runtime.has_tokio() => None,
            _ => {
                let config = config.in_the_clear();
                Some(Transport::Tcp(TcpClient::new(
                    &config,
                    None,
                    runtime.clone(),
                )?))
            }
        };
        Ok(Self {
            config,
            runtime,
            transport,
            fallback,
            cleartext,
            ids: AtomicU64::new(0),
            spare: Mutex::default(),
            pools: Mutex::default(),
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Its runtime.
    pub(crate) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    /// Opens `connections` connections to the origin of `url` in advance: the next
    /// [`fetch`](Self::fetch) or [page](crate::page::load) from there uses them.
    ///
    /// # Errors
    /// The URL is invalid, or the error of the first connection that could not be opened.
    pub async fn open(&self, url: &str, connections: usize) -> Result<(), ClientError> {
        let origin = parse_url(url, self.config.version)?.origin;
        let pooled_connections: Vec<_> = PooledConnection::some(&origin, connections).collect();
        for pooled in &pooled_connections {
            pooled.open(self).await?;
        }
        self.spare().push(OriginConnections {
            origin,
            pooled_connections,
        });
        Ok(())
    }

    /// `connections` pooled connections to `origin`; those that were opened in advance come first.
    pub(crate) fn pooled_connections(
        &self,
        origin: &Origin,
        connections: usize,
    ) -> Vec<Arc<PooledConnection>> {
        let mut pooled_connections = self.take_spare(origin);
        pooled_connections.truncate(connections);
        let opened = pooled_connections.len();
        pooled_connections.extend(PooledConnection::some(origin, connections).skip(opened));
        pooled_connections
    }

    /// The pool of pipes to `origin` for a fetch or page load that begins, if it has [pools](ClientConfig::pipes) and its
    /// version is HTTP/3.
    pub(crate) fn pool(&self, origin: &Origin) -> Option<Arc<Pool>> {
        let config = self.config.pipes.as_ref()?;
        if self.config.version != HttpVersion::Http3 {
            return None;
        }
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(origin) {
            pool.begin_session();
            return Some(Arc::clone(pool));
        }
        let pool = Pool::new(config, origin, &self.runtime);
        if pools.len() >= MAX_POOLS {
            // Fetches, objects and connections that open have a reference, too.
            let unused = pools.iter().find(|(_, pool)| Arc::strong_count(pool) == 1);
            let Some(unused) = unused.map(|(origin, _)| origin.clone()) else {
                // It ends with its fetch or page load.
                return Some(pool);
            };
            pools.remove(&unused);
        }
        pools.insert(origin.clone(), Arc::clone(&pool));
        Some(pool)
    }

    /// The pipes of its [pools](ClientConfig::pipes) that are open, and those that have closed since the requests began
    /// that still use the pool.
    pub fn pipes(&self) -> Vec<PipeReport> {
        let pools = self.pools();
        pools.iter().flat_map(|pool| pool.reports()).collect()
    }

    /// Its pools of pipes.
    pub(crate) fn pools(&self) -> Vec<Arc<Pool>> {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.values().cloned().collect()
    }

    /// The kind of the object at `path`, for pipes.
    pub(crate) fn kind_of(&self, path: &str) -> ObjectKind {
        let pipes = self.config.pipes.as_ref();
        pipes.map_or_else(ObjectKind::default, |pipes| pipes.kinds.of_path(path))
    }

    /// Takes the pooled connections to `origin` that were opened in advance or kept.
    fn take_spare(&self, origin: &Origin) -> Vec<Arc<PooledConnection>> {
        let mut spare = self.spare();
        let Some(index) = spare.iter().position(|known| known.origin == *origin) else {
            return Vec::new();
        };
        let taken = spare.remove(index).pooled_connections;
        for pooled in &taken {
            pooled.forget_closed();
        }
        taken
    }

    /// Keeps connections for the next fetch.
    fn keep(&self, used: Vec<OriginConnections>) {
        let mut spare = self.spare();
        spare.extend(used);
        let excess = spare.len().saturating_sub(MAX_POOLS);
        spare.drain(..excess);
    }

    fn spare(&self) -> MutexGuard<'_, Vec<OriginConnections>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to `origin`, trying its addresses one after another. The connection announces a
    /// [bundle](ClientConfig::bundle) of one.
    ///
    /// # Errors
    /// The error of the last address: unreachable, not trusted, or another protocol.
    pub async fn connect(&self, origin: &Origin) -> Result<Connection, ClientError> {
        self.connect_one_of(origin, 1).await
    }

    /// Opens a QUIC connection to `origin` for another protocol than HTTP/3, which `protocol` names (ALPN), trying its
    /// addresses one after another. Completes when the handshake is complete.
    ///
    /// # Errors
    /// The error of the last address: unreachable, not trusted, or another protocol. [`ClientError::Quic`]: the client uses
    /// TCP.
    pub async fn connect_for(
        &self,
        protocol: &[u8],
        origin: &Origin,
    ) -> Result<marline::Connection, ClientError> {
        let Transport::Quic(quic) = &self.transport else {
            return Err(ClientError::Quic("this client uses TCP".to_owned()));
        };
        let limit = self.config.connect_timeout;
        let mut last = ClientError::Quic(format!("{} has no address", origin.host()));
        for address in self.resolve(origin).await? {
            let connecting = quic.connect_for(protocol, origin, address);
            let connected = self.runtime.timeout(limit, connecting).await;
            last = match connected {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => error,
                Err(_) => ClientError::ConnectTimeout {
                    host: origin.host.clone(),
                    address,
                    limit,
                },
            };
        }
        Err(last)
    }

    /// Connects to `origin` at `address`, over the version of the configuration.
    ///
    /// # Errors
    /// Unreachable, not trusted, or another protocol.
    pub(crate) async fn connect_at(
        &self,
        origin: &Origin,
        address: SocketAddr,
    ) -> Result<Connection, ClientError> {
        let request = ConnectRequest {
            id: self.ids.fetch_add(1, Relaxed),
            origin,
            addresses: &[],
            connections: 1,
            alternative: &[],
            proxy: None,
        };
        self.connect_to(&self.transport, request, address).await
    }

    /// Opens one of `connections` to `origin` that are used together.
    async fn connect_one_of(
        &self,
        origin: &Origin,
        connections: usize,
    ) -> Result<Connection, ClientError> {
        let id = self.ids.fetch_add(1, Relaxed);
        let proxy = self
            .config
            .proxies
            .of(origin)
            .filter(|_| self.may_use_tcp(origin));
        let start = self.runtime.now();
        let addresses = match (proxy, &self.config.network.unix_socket) {
            (Some(proxy), _) => self.resolve_proxy(proxy).await?,
            // A socket of Unix has no address.
            (None, Some(_)) => vec![SocketAddr::from(([0, 0, 0, 0], 0))],
            (None, None) => self.resolve(origin).await?,
        };
        let alternative = match proxy {
            Some(_) => Vec::new(),
            None => self.alternative(origin).await,
        };
        let resolving = self.runtime.now().saturating_since(start);
        let request = ConnectRequest {
            id,
            origin,
            addresses: &addresses,
            connections,
            alternative: &alternative,
            proxy,
        };
        let connected = match (&self.cleartext, &self.fallback) {
            (Some(cleartext), _) if !origin.is_encrypted() => {
                self.connect_over(cleartext, request).await
            }
            (_, Some(fallback)) => fallback.connect(self, request).await,
            (_, None) => self.connect_over(&self.transport, request).await,
        };
        let mut connection = connected?;
        connection.resolving = resolving;
        Ok(connection)
    }

    /// Whether connections to `origin` over TCP may be opened, which a proxy needs.
    fn may_use_tcp(&self, origin: &Origin) -> bool {
        self.fallback.is_some()
            || matches!(self.transport, Transport::Tcp(_))
            || !origin.is_encrypted()
    }

    /// How long requests wait for `connection` before another may take its place: one over TCP while its handshake is not
    /// complete, one from another of the client's addresses while it is not confirmed. `None` if none may.
    fn replacement_wait(&self, connection: &Connection) -> Option<Duration> {
        if self.fallback.is_some() && connection.is_early() {
            return Some(limits::HTTP3_HEAD_START);
        }
        match &self.transport {
            Transport::Quic(quic) => quic.confirmation_wait(connection),
            Transport::Tcp(_) => None,
        }
    }

    /// Whether another connection may take the place of `connection`.
    fn may_replace(&self, connection: &Connection) -> bool {
        self.replacement_wait(connection).is_some()
    }

    /// Opens another connection instead of `early`, over TCP or from another address, unless the handshake of `early`
    /// completes, or is confirmed, before.
    async fn connect_instead_of(
        &self,
        early: &Connection,
        origin: &Origin,
    ) -> Result<Option<Connection>, ClientError> {
        let fallback = self.fallback.as_ref().filter(|_| early.is_early());
        let Some(fallback) = fallback else {
            let id = self.ids.fetch_add(1, Relaxed);
            return match &self.transport {
                Transport::Quic(quic) => quic.connect_instead_of(id, early, origin).await,
                Transport::Tcp(_) => Ok(None),
            };
        };
        let addresses = self.resolve(origin).await?;
        let request = ConnectRequest {
            id: self.ids.fetch_add(1, Relaxed),
            origin,
            addresses: &addresses,
            connections: 1,
            alternative: &[],
            proxy: None,
        };
        fallback.connect_instead_of(early, self, request).await
    }

    /// Connects over `transport`, trying the addresses one after another.
    async fn connect_over(
        &self,
        transport: &Transport,
        request: ConnectRequest<'_>,
    ) -> Result<Connection, ClientError> {
        let mut failure = None;
        let alternative = match transport {
            Transport::Quic(_) => request.alternative,
            Transport::Tcp(_) => &[],
        };
        for &address in alternative.iter().chain(request.addresses) {
            match self.connect_to(transport, request, address).await {
                Ok(connection) => return Ok(connection),
                // The certificate belongs to the host: other addresses present the same one.
                Err(error @ ClientError::Certificate { .. }) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| ClientError::Resolve {
            host: request.origin.host.clone(),
            cause: io::ErrorKind::NotFound.into(),
        }))
    }

    async fn connect_to(
        &self,
        transport: &Transport,
        request: ConnectRequest<'_>,
        address: SocketAddr,
    ) -> Result<Connection, ClientError> {
        let ConnectRequest {
            id,
            origin,
            connections,
            proxy,
            ..
        } = request;
        let limit = self.config.connect_timeout;
        let start = self.runtime.now();
        let attempt = async {
            let mut connection = match transport {
                Transport::Tcp(tcp) => tcp.connect(id, origin, address, proxy).await?,
                Transport::Quic(quic) => quic.connect(id, origin, address, connections).await?,
            };
            connection.handshake = self.runtime.now() - start;
            Ok(connection)
        };
        self.runtime
            .timeout(limit, attempt)
            .await
            .unwrap_or_else(|_| {
                Err(ClientError::ConnectTimeout {
                    host: origin.host.clone(),
                    address,
                    limit,
                })
            })
    }

    /// The addresses of `origin`: those of the configuration, its literal address, or those that the system resolves.
    /// Addresses that no server can have cause an error.
    async fn resolve(&self, origin: &Origin) -> Result<Vec<SocketAddr>, ClientError> {
        let Server { host, port } = self.config.network.server(&origin.host, origin.port);
        let host = host.as_str();
        let zone = origin.zone.as_deref().filter(|_| host == origin.host);
        let found = self.lookup(host, zone, port);
        let mut addresses = found.await.map_err(|cause| ClientError::Resolve {
            host: host.to_owned(),
            cause,
        })?;
        let refused = addresses
            .iter()
            .find_map(|&address| Some((address, address::unusable(address)?)));
        addresses.retain(|&address| address::unusable(address).is_none());
        match refused {
            Some((address, reason)) if addresses.is_empty() => Err(ClientError::Connect {
                host: host.to_owned(),
                address,
                cause: reason.into(),
            }),
            _ => Ok(addresses),
        }
    }

    /// The addresses of the server that `origin` has named for HTTP/3; none if there is none, or if it has none.
    async fn alternative(&self, origin: &Origin) -> Vec<SocketAddr> {
        let now = self.runtime.unix_time();
        let services = self.config.alt_services.as_ref();
        let named = services.and_then(|services| services.of(origin, now));
        let Some(Server { host, port }) = named.filter(|_| origin.is_encrypted()) else {
            return Vec::new();
        };
        let found = self.lookup(&host, None, port).await.unwrap_or_default();
        let usable = |address: &SocketAddr| address::unusable(*address).is_none();
        found.into_iter().filter(usable).collect()
    }

    async fn resolve_proxy(&self, proxy: &HttpProxy) -> Result<Vec<SocketAddr>, ClientError> {
        let found = self.lookup(&proxy.host, None, proxy.port).await;
        found.map_err(|cause| ClientError::Proxy {
            proxy: proxy.to_string(),
            cause: ProxyError::Resolve(cause),
        })
    }

    async fn lookup(
        &self,
        host: &str,
        zone: Option<&str>,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        let network = &self.config.network;
        if let Some(addresses) = network.known(host, port) {
            return Ok(addresses);
        }
        if let Some(address) = self.config.resolve.get(host) {
            let port = if address.port() == 0 {
                port
            } else {
                address.port()
            };
            return Ok(vec![SocketAddr::new(address.ip(), port)]);
        }
        match (host.parse::<IpAddr>(), zone) {
            (Ok(IpAddr::V6(ip)), Some(zone)) => return Ok(vec![address::in_zone(ip, zone, port)?]),
            (Ok(ip), _) => return Ok(vec![SocketAddr::new(ip, port)]),
            (Err(_), _) => {}
        }
        let mut addresses: Vec<_> = match self.runtime.has_tokio() {
            true => tokio::net::lookup_host((host, port)).await?.collect(),
            false => return Err(io::ErrorKind::Unsupported.into()),
        };
        // `localhost` and many hosts have addresses of both families; IPv4 is more often reachable.
        addresses.sort_by_key(SocketAddr::is_ipv6);
        addresses.dedup();
        addresses.retain(|address| network.may_use(address));
        match addresses.is_empty() {
            true => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it has no address of the family that is asked for",
            )),
            false => Ok(addresses),
        }
    }

    /// The path manager of its QUIC connections, if [`ClientConfig::paths`] is set.
    pub fn path_manager(&self) -> Option<&marline::PathManager> {
        match &self.transport {
            Transport::Quic(quic) => quic.path_manager(),
            Transport::Tcp(_) => None,
        }
    }

    /// The QUIC endpoint that connections to `remote` share, for example to move it to another socket. With
    /// [`own_sockets`](ClientConfig::own_sockets) none uses it.
    ///
    /// # Errors
    /// The client does not use QUIC, or no socket could be opened.
    pub fn endpoint(&self, remote: SocketAddr) -> Result<marline::Endpoint, ClientError> {
        match &self.transport {
            Transport::Quic(quic) => quic.endpoint(remote),
            Transport::Tcp(_) => Err(ClientError::Quic("this client uses TCP".to_owned())),
        }
    }

    /// The configuration of its QUIC connections, with the saved sessions; `None` over TCP.
    pub fn quic_config(&self) -> Option<marline::ClientConfig> {
        match &self.transport {
            Transport::Quic(quic) => Some(quic.config()),
            Transport::Tcp(_) => None,
        }
    }

    /// Closes all connections, and returns as soon as CONNECTION_CLOSE is sent on each, without the closing period of
    /// RFC 9000, section 10.2.
    pub async fn close(self) {
        if let Transport::Quic(quic) = &self.transport {
            quic.close().await;
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
