//! A web server: one service behind HTTP/3, HTTP/2 and HTTP/1.1 on one port number.
//!
//! ```text
//! UDP -> h3::listen  --\
//!                       > exchange::respond -> Site (files, or anything else)
//! TCP -> tcp::listen --/
//! ```

mod accept;
mod access_log;
mod account;
mod admission;
mod alt_svc;
mod budget;
mod challenges;
mod client_certificates;
mod compression;
mod config;
mod current;
mod descriptors;
mod exchange;
mod exposition;
mod files;
mod generated;
mod given;
mod h3;
mod idle;
mod metrics;
mod monitor;
mod ocsp;
mod open_files;
mod paced;
mod panics;
mod passage;
mod progress;
mod quic;
mod received;
mod record;
mod refusal;
mod reload;
mod resources;
mod shares;
mod slots;
mod state;
mod stop;
mod tcp;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod trusted;
#[cfg(target_os = "linux")]
mod upgrade;
mod workers;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use marline::{Instant, QuicLb, TicketKey};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::access_log::{AccessLog, AccessLogFormat};
pub(crate) use self::account::Account;
use self::admission::{Admission, ConnectionLimits};
use self::alt_svc::AltSvc;
pub(crate) use self::budget::{Budget, Grant};
pub use self::challenges::{AnsweredChallenge, Challenges};
pub use self::client_certificates::{
    ClientCertificate, ClientCertificates, ClientCertificatesError, ClientRules, RevocationList,
    TlsClient,
};
pub use self::compression::{
    Acceptable, Compression, DictionaryPattern, InvalidPattern, compressed,
};
pub use self::config::{AlsoListen, Protocols, ServerConfig, ServerLimits};
use self::current::{Current, Replaceable};
use self::descriptors::Descriptors;
pub use self::descriptors::raise_open_file_limit;
pub use self::exchange::{EarlyData, Tunnel};
pub use self::exposition::head as metric_head;
pub use self::files::{Directory, DirectoryEntry, directory};
pub use self::generated::{GeneratedObject, generated};
pub use self::given::{GivenSockets, UnusedSocket};
pub use self::metrics::{Metrics, MetricsSource, SiteName};
pub use self::monitor::{StatusHealth, UpstreamHealth, serve_metrics};
pub use self::ocsp::{CertificateStatus, StatusError, StatusQuery};
pub use self::panics::report_panics_in_one_line;
pub(crate) use self::passage::ProxiedContent;
pub use self::record::PassedOn;
pub use self::refusal::{Refusal, RouteName};
pub use self::reload::{Handle, OpenConnections};
use self::reload::{KeptSessions, QuicEndpoint};
use self::resources::Resources;
pub(crate) use self::state::Sessions;
pub use self::state::{SharedKeys, StateDirectory, StateError, read_secret};
use self::stop::Stop;
pub(crate) use self::stop::Stopped;
pub use self::tls::{Identity, IdentityError, NamedIdentity};
pub use self::trusted::{ClientAddress, ClientField, TrustedProxies};
#[cfg(target_os = "linux")]
pub use self::upgrade::{Predecessor, UpgradeError, upgrade};
use self::workers::Workers;
use crate::body::Body;
use crate::limits;
use crate::log::Level;
use crate::log::messages::{self, Frequent, Subject};
use crate::runtime::RuntimeHandle;
use crate::tasks::TaskSet;
use crate::tcp::{self as tcp_sockets, SystemSockets, TcpProtocol, TcpSockets};
use crate::transport::{QlogBudget, QlogLimits};

/// The service that answers requests.
pub type Site = tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The reason why a server cannot start, or why it stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port is in use, or this machine does not have the address.
    #[error("cannot listen on {protocol} {address}: {cause}; choose another address or port")]
    Listen {
        /// TCP or UDP.
        protocol: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        cause: io::Error,
    },
    /// The process before listens on one address of a port, and this one on all, or the reverse.
    #[error(
        "cannot take over {listens}: the configuration has {wanted} now; only a restart changes between one and all addresses of a port"
    )]
    Overlaps {
        /// An address of the process before.
        listens: SocketAddr,
        /// That of this process.
        wanted: SocketAddr,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The state kept over restarts cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The QUIC settings are inconsistent.
    #[error("cannot set up QUIC: {0}")]
    Quic(String),
    /// The task of the QUIC endpoint has ended: its socket failed, or an observer or a policy panicked.
    #[error(
        "the QUIC endpoint at {0} has failed, so the server stops; an earlier message says why if it panicked; start it again"
    )]
    EndpointFailed(SocketAddr),
    /// No runtime was given, and the caller runs in no tokio runtime.
    #[error("cannot run: {0}")]
    Runtime(io::Error),
}

/// A server whose sockets are open. It answers requests while [`run`](Self::run) is polled.
pub struct Server {
    addresses: Vec<SocketAddr>,
    tcp: Vec<OfWorker<tcp::Listener>>,
    quic: Vec<OfWorker<h3::Listener>>,
    metrics_pages: Vec<TcpListener>,
    context: Arc<Context>,
    workers: Workers,
}

/// A listener, and the number of its worker.
struct OfWorker<L> {
    worker: usize,
    listener: L,
}

/// State that is shared by all connections.
struct Context {
    runtime: RuntimeHandle,
    started: Instant,
    metrics: Arc<Metrics>,
    slots: Arc<Semaphore>,
    /// Connections over TCP that make room for others and may send GOAWAY before.
    leaving: Semaphore,
    /// Slots in total.
    max_connections: usize,
    /// Connections over TCP, each of which takes a file descriptor.
    admission: Admission,
    resources: Arc<Resources>,
    stop: Stop,
    /// Set when a stopping server shall not wait for requests.
    hurry: Stop,
    /// Set when a stopping server has waited long enough: connections over TCP end as they are.
    cut: Stop,
    #[cfg(target_os = "linux")]
    takeover: upgrade::Takeover,
    /// The address of a QUIC endpoint that has failed.
    failed: OnceLock<SocketAddr>,
    protocols: Protocols,
    state: Option<Arc<StateDirectory>>,
    shared: Option<Arc<SharedKeys>>,
    quic_lb: Option<Arc<QuicLb>>,
    challenges: Challenges,
    endpoints: Vec<QuicEndpoint>,
    /// Of the workers.
    runtimes: Vec<RuntimeHandle>,
    logs: Logs,
    /// Connections over TCP so far.
    tcp_connections: AtomicU64,
    current: Replaceable<Current>,
}

impl Context {
    /// Counts and logs a refused connection.
    fn refused(&self, client: SocketAddr) {
        self.metrics.connection_refused();
        messages::emit_frequent(Level::Warning, Frequent::Connections, || {
            format!(
                "a connection of {client} was refused: too many are open, of all or of its network"
            )
        });
    }

    /// Stops the server because the endpoint at `address` has failed.
    fn fail(&self, address: SocketAddr) {
        // One failure is reported; it stops the server.
        let _ = self.failed.set(address);
        self.stop.stop();
    }

    /// Whether another process has taken over.
    fn is_handed_over(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.takeover.has_successor();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// The endpoints of all addresses and workers.
    fn quic_endpoints(&self) -> impl Iterator<Item = &marline::Endpoint> {
        self.endpoints.iter().flat_map(|quic| &quic.endpoints)
    }
}

impl Server {
    /// Opens the sockets. Port 0 selects one that is free for both TCP and UDP.
    ///
    /// # Errors
    /// A port is in use, the certificate does not match the key, or there is no runtime.
    pub async fn bind(config: ServerConfig) -> Result<Self, ServeError> {
        Self::bind_given(config, &mut GivenSockets::default()).await
    }

    /// [`bind`](Self::bind), except that sockets at its addresses are taken from `given`. There are as many workers as sockets at
    /// one address at least. If there are more, they share one of TCP, and more of UDP are bound beside it, unless the system
    /// refuses: then fewer serve HTTP/3.
    ///
    /// # Errors
    /// See [`bind`](Self::bind).
    pub async fn bind_given(
        config: ServerConfig,
        given: &mut GivenSockets,
    ) -> Result<Self, ServeError> {
        let runtime = RuntimeHandle::new(config.runtime.clone()).map_err(ServeError::Runtime)?;
        let attempts = match config.listen.port() {
            0 if given.is_empty() => limits::PORT_ATTEMPTS,
            _ => 1,
        };
        let metrics = Arc::new(Metrics::of(&config.quic.transport));
        let workers = config.workers.max(given.workers());
        let open = Descriptors::of_process(&config.limits, workers);
        let logs = Logs::new(open.qlog, &config.limits);
        let mut attempt = 1;
        let workers = Workers::start(workers, &runtime).map_err(ServeError::Runtime)?;
        let quic_lb = match &config.quic_lb {
            None => None,
            Some(config) => {
                let seed = runtime.shared().seed().map_err(ServeError::Runtime)?;
                Some(Arc::new(QuicLb::new(config.clone(), &seed)))
            }
        };
        let opening = Opening {
            config: &config,
            workers: &workers,
            metrics: &metrics,
            logs: &logs,
            quic_lb: quic_lb.as_ref(),
        };
        let Sockets {
            addresses,
            tcp,
            quic,
            endpoints,
        } = loop {
            match open_sockets(&opening, given).await {
                Err(ServeError::Listen { .. }) if attempt < attempts => attempt += 1,
                sockets => break sockets?,
            }
        };
        let metrics_pages = open_metrics(&config, given, &runtime)?;
        let has_tls = config.protocols.http1 || config.protocols.http2;
        let tls = match tcp.is_empty() || !has_tls {
            true => None,
            false => Some(tcp::Tls::new(
                &config,
                config.protocols,
                tickets(config.state.as_ref(), config.shared.as_ref()).as_ref(),
            )?),
        };
        let limits = &config.limits;
        let resources = Arc::new(Resources::new(open.files, limits.max_buffered_bytes));
        metrics.show(&resources);
        metrics.show_more(config.more_metrics);
        metrics.show_log(config.access_log.as_ref());
        metrics.show_sites(&config.site_names);
        let connection_limits = ConnectionLimits {
            total: open.connections,
            per_address: limits.max_tcp_connections_per_address,
            per_prefix: limits.max_tcp_connections_per_prefix,
        };
        let context = Context {
            admission: Admission::new(connection_limits, &runtime),
            started: runtime.now(),
            runtime,
            metrics,
            leaving: Semaphore::new(limits::LEAVING_CONNECTIONS),
            slots: Arc::new(Semaphore::new(config.limits.max_connections)),
            max_connections: config.limits.max_connections,
            resources,
            stop: Stop::default(),
            hurry: Stop::default(),
            cut: Stop::default(),
            #[cfg(target_os = "linux")]
            takeover: upgrade::Takeover::of(&tcp, &metrics_pages).map_err(ServeError::Runtime)?,
            failed: OnceLock::new(),
            protocols: config.protocols,
            state: config.state,
            shared: config.shared,
            quic_lb,
            challenges: config.challenges,
            endpoints,
            runtimes: workers
                .all()
                .iter()
                .map(|worker| worker.runtime().clone())
                .collect(),
            logs,
            tcp_connections: AtomicU64::new(0),
            current: Replaceable::new(Current {
                site: config.site,
                log: config.access_log,
                limits: config.limits,
                trusted: config.trusted,
                transport: config.quic.transport,
                client_rules: config.client_rules,
                tls,
            }),
        };
        Ok(Self {
            addresses,
            tcp,
            quic,
            metrics_pages,
            context: Arc::new(context),
            workers,
        })
    }

    /// The first address on which it listens, for both TCP and UDP.
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses on which it listens; [`ServerConfig::listen`] is the first.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The first address of the metrics, if they are served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addrs().first().copied()
    }

    /// All addresses of the metrics.
    pub fn metrics_addrs(&self) -> Vec<SocketAddr> {
        let pages = self.metrics_pages.iter();
        pages
            .filter_map(|socket| socket.local_addr().ok())
            .collect()
    }

    /// The counters of the server.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.context.metrics)
    }

    /// A handle to stop it.
    pub fn handle(&self) -> Handle {
        Handle {
            stop: self.context.stop.clone(),
            hurry: self.context.hurry.clone(),
            context: Arc::downgrade(&self.context),
        }
    }

    /// Serves until [`Handle::shut_down`], then lets requests in progress finish.
    ///
    /// # Errors
    /// The QUIC endpoint has failed. Requests over TCP had the grace period of a shutdown.
    pub async fn run(self) -> Result<(), ServeError> {
        let context = self.context;
        let mut on_tokio = JoinSet::new();
        let mut on_any = TaskSet::new(&context.runtime);
        let workers = self.workers.all();
        for OfWorker { worker, listener } in self.tcp {
            workers[worker].spawn(&mut on_tokio, listener.run(Arc::clone(&context)));
        }
        for OfWorker { worker, listener } in self.quic {
            let context = Arc::clone(&context);
            let address = listener.local_addr();
            let runtime = workers[worker].runtime();
            let accepting = async move {
                if listener.run(Arc::clone(&context)).await.is_err() {
                    context.fail(address);
                }
            };
            on_any.spawn_on(runtime, accepting);
        }
        if let Some(state) = &context.state {
            on_any.spawn(rotate_keys(Arc::clone(state), Arc::clone(&context)));
        }
        if let Some(shared) = &context.shared {
            on_any.spawn(rotate_shared_keys(Arc::clone(shared), Arc::clone(&context)));
        }
        #[cfg(target_os = "linux")]
        context.takeover.runs.stop();
        // They are there until the end, so that they show that the server stops.
        let mut pages = JoinSet::new();
        for socket in self.metrics_pages {
            pages.spawn(monitor::serve(socket, Arc::clone(&context)));
        }
        context.stop.stopped().await;
        if context.is_handed_over() {
            // The other process accepts their connections.
            pages.shutdown().await;
        }
        #[cfg(target_os = "linux")]
        context.takeover.close_duplicates();
        let finished = async {
            while on_any.join_next().await.is_some() {}
            while on_tokio.join_next().await.is_some() {}
            #[cfg(target_os = "linux")]
            context.predecessor_ended().await;
        };
        let mut finished = pin!(finished);
        let runtime = &context.runtime;
        let mut forced = context.hurry.stopped();
        let in_time = async {
            tokio::select! {
                biased;
                () = &mut forced => Err(ForcedShutdown),
                () = finished.as_mut() => Ok(()),
            }
        };
        let grace = {
            let limits = &context.current.get().limits;
            match context.is_handed_over() {
                true => limits.upgrade_grace,
                false => limits.shutdown_grace,
            }
        };
        let waited = runtime.timeout(grace, in_time).await;
        if !matches!(waited, Ok(Ok(()))) {
            let open = context.open();
            if open != OpenConnections::default() {
                let reason = match waited {
                    Err(_) => format!("after {} s", grace.as_secs()),
                    Ok(_) => "at once".to_owned(),
                };
                let text = format!("the server stops, and cuts {reason}: {open}");
                messages::emit(Level::Warning, Subject::Server, &text);
            }
            context.cut.stop();
            // The remaining connections are closed, so that their samples reach the history store.
            for endpoint in context.quic_endpoints() {
                endpoint.close(h3::NO_ERROR, b"");
            }
            let all_idle = async {
                for endpoint in context.quic_endpoints() {
                    endpoint.wait_idle().await;
                }
                // The access log records the outcome of all requests.
                while context.metrics.open_records() > 0 {
                    runtime.sleep(limits::MIN_POLL_INTERVAL).await;
                }
            };
            let _ = runtime.timeout(limits::CLOSE_TIMEOUT, all_idle).await;
        }
        match context.failed.get() {
            Some(address) => Err(ServeError::EndpointFailed(*address)),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// The grace of a shutdown was cut short.
struct ForcedShutdown;

/// Replaces the keys of a state directory each time they are old, until the server stops.
async fn rotate_keys(state: Arc<StateDirectory>, context: Arc<Context>) {
    let runtime = &context.runtime;
    let mut wait = state.until_rotation(runtime.unix_time());
    while runtime.timeout(wait, context.stop.stopped()).await.is_err() {
        wait = match state.rotate(runtime.unix_time()) {
            Ok(wait) => wait,
            // The present keys stay in use.
            Err(error) => {
                context.metrics.rotation_failed();
                let text = format!("the keys were not replaced: {error}");
                messages::emit(Level::Error, Subject::Keys, &text);
                limits::ROTATION_RETRY
            }
        };
    }
}

/// Takes the keys of each day, until the server stops.
async fn rotate_shared_keys(shared: Arc<SharedKeys>, context: Arc<Context>) {
    let runtime = &context.runtime;
    let mut wait = shared.rotate(runtime.unix_time());
    while runtime.timeout(wait, context.stop.stopped()).await.is_err() {
        wait = shared.rotate(runtime.unix_time());
    }
}

/// The key of the session tickets of a server, if it does not keep sessions in memory.
fn tickets(
    state: Option<&Arc<StateDirectory>>,
    shared: Option<&Arc<SharedKeys>>,
) -> Option<Arc<TicketKey>> {
    shared
        .map(|shared| shared.tickets())
        .or_else(|| state.map(|state| state.tickets()))
}

/// The limits of the qlog files of all connections, which outlast a replaced configuration.
struct Logs {
    budget: Arc<QlogBudget>,
    /// Files that may be open at once.
    descriptors: usize,
}

impl Logs {
    fn new(descriptors: usize, limits: &ServerLimits) -> Self {
        Self {
            budget: QlogBudget::new(Self::within(descriptors, limits)),
            descriptors,
        }
    }

    /// Replaces the limits.
    fn set_limits(&self, limits: &ServerLimits) {
        self.budget
            .set_limits(Self::within(self.descriptors, limits));
    }

    fn within(descriptors: usize, limits: &ServerLimits) -> QlogLimits {
        QlogLimits {
            open_files: limits.qlog.open_files.min(descriptors),
            ..limits.qlog
        }
    }
}

/// The listening sockets of a server.
struct Sockets {
    addresses: Vec<SocketAddr>,
    tcp: Vec<OfWorker<tcp::Listener>>,
    quic: Vec<OfWorker<h3::Listener>>,
    endpoints: Vec<QuicEndpoint>,
}

/// The settings with which the sockets of all addresses are opened.
struct Opening<'a> {
    config: &'a ServerConfig,
    workers: &'a Workers,
    metrics: &'a Metrics,
    logs: &'a Logs,
    quic_lb: Option<&'a Arc<QuicLb>>,
}

async fn open_sockets(
    opening: &Opening<'_>,
    given: &mut GivenSockets,
) -> Result<Sockets, ServeError> {
    let mut sockets = Sockets {
        addresses: Vec::new(),
        tcp: Vec::new(),
        quic: Vec::new(),
        endpoints: Vec::new(),
    };
    let Opening {
        config, workers, ..
    } = opening;
    sockets.open(0, config.listen, opening, given).await?;
    let port = sockets.addresses[0].port();
    for (number, also) in (1..).zip(&config.also_listen) {
        let (address, may_be_missing) = match *also {
            AlsoListen::IfPresent(ip) => (SocketAddr::new(ip, port), true),
            AlsoListen::AtIfPresent(address) => (address, true),
            AlsoListen::At(address) => (address, false),
        };
        if may_be_missing && !is_local(address.ip(), workers.all()[0].runtime()) {
            continue;
        }
        sockets.open(number, address, opening, given).await?;
    }
    Ok(sockets)
}

/// The sockets of the page of metrics.
fn open_metrics(
    config: &ServerConfig,
    given: &mut GivenSockets,
    runtime: &RuntimeHandle,
) -> Result<Vec<TcpListener>, ServeError> {
    let Some(first) = config.metrics else {
        return Ok(Vec::new());
    };
    let mut listen = |address| match given.take_tcp(address).pop() {
        Some(given) => {
            TcpListener::from_std(given).map_err(|cause| not_listening("TCP", address, cause))
        }
        None => {
            refuse_overlap(given, address)?;
            listen_tcp(address, runtime)
        }
    };
    let mut sockets = vec![listen(first)?];
    let port = sockets[0]
        .local_addr()
        .map_or(first.port(), |address| address.port());
    for &ip in &config.also_metrics {
        if is_local(ip, runtime) {
            sockets.push(listen(SocketAddr::new(ip, port))?);
        }
    }
    Ok(sockets)
}

/// Refuses `address` if another one of its port, which covers it or which it covers, is in use by the process before: neither
/// could have the connections of the other.
fn refuse_overlap(given: &GivenSockets, address: SocketAddr) -> Result<(), ServeError> {
    match given.overlapping(address) {
        Some(listens) => Err(ServeError::Overlaps {
            listens,
            wanted: address,
        }),
        None => Ok(()),
    }
}

/// Whether this host has the address: IPv6 may be disabled.
fn is_local(ip: IpAddr, runtime: &RuntimeHandle) -> bool {
    runtime.shared().bind(SocketAddr::new(ip, 0)).is_ok()
}

impl Sockets {
    /// Listens on one more address, that with this number in the configuration, on TCP and UDP as the protocols require.
    async fn open(
        &mut self,
        number: usize,
        mut address: SocketAddr,
        opening: &Opening<'_>,
        given: &mut GivenSockets,
    ) -> Result<(), ServeError> {
        let &Opening {
            config,
            workers,
            metrics,
            logs,
            quic_lb,
        } = opening;
        let protocols = config.protocols;
        let are_in_use = given.are_in_use();
        refuse_overlap(given, address)?;
        if protocols.http1 || protocols.http2 || protocols.cleartext {
            let protocol = match config.multipath_tcp {
                true => TcpProtocol::Multipath,
                false => TcpProtocol::Tcp,
            };
            let factory = config.tcp_sockets.as_deref().unwrap_or(&SystemSockets);
            let failed = |cause| not_listening("TCP", address, cause);
            let given = given.take_tcp(address);
            let sockets = match given.is_empty() {
                true => listen_all(bind_tcp(address, workers, factory, protocol)?, workers),
                false => share_given(&given, workers),
            };
            let sockets = sockets.map_err(failed)?;
            address = sockets[0].local_addr().unwrap_or(address);
            let alt_svc = AltSvc::new(address.port()).filter(|_| protocols.http3);
            for (worker, socket) in sockets.into_iter().enumerate() {
                self.tcp.push(OfWorker {
                    worker,
                    listener: tcp::Listener::new(socket, alt_svc.clone()),
                });
            }
        }
        if protocols.http3 {
            let runtime = workers.all()[0].runtime();
            let counting = metrics.observers(&config.quic.transport);
            let sessions = KeptSessions::new(address);
            let resumption = sessions.of(
                config.state.as_deref(),
                config.shared.as_deref(),
                config,
                are_in_use,
            )?;
            let settings =
                quic::server_config(config, runtime, counting, &resumption, &logs.budget)?;
            let given = given.take_udp(address);
            let listener = quic::Listener {
                number,
                address,
                receives: !are_in_use,
            };
            let endpoints =
                quic::server_endpoints(config, &settings, &listener, given, workers, quic_lb)?;
            address = endpoints[0].local_addr();
            for (worker, endpoint) in endpoints.iter().enumerate() {
                self.quic.push(OfWorker {
                    worker,
                    listener: h3::Listener::new(endpoint.clone(), settings.clone()),
                });
            }
            self.endpoints.push(QuicEndpoint::new(endpoints, sessions));
        }
        self.addresses.push(address);
        Ok(())
    }
}

/// Binds a socket for each worker; over plain TCP if the kernel has no Multipath TCP.
fn bind_tcp(
    address: SocketAddr,
    workers: &Workers,
    sockets: &dyn TcpSockets,
    protocol: TcpProtocol,
) -> Result<Vec<TcpSocket>, ServeError> {
    let count = workers.count();
    let bound = match workers.all()[0].runtime().has_tokio() {
        true => {
            tcp_sockets::bind(sockets, address, protocol, count).or_else(|error| match protocol {
                TcpProtocol::Multipath if tcp_sockets::has_no_multipath(&error) => {
                    tcp_sockets::bind(sockets, address, TcpProtocol::Tcp, count)
                }
                _ => Err(error),
            })
        }
        false => Err(io::ErrorKind::Unsupported.into()),
    };
    bound.map_err(|cause| not_listening("TCP", address, cause))
}

/// Has each worker listen with the socket that is bound for it.
fn listen_all(bound: Vec<TcpSocket>, workers: &Workers) -> io::Result<Vec<TcpListener>> {
    let each = bound.into_iter().zip(workers.all());
    let listening = each.map(|(socket, worker)| {
        let _runtime = worker.enter();
        socket.listen(tcp_sockets::BACKLOG)
    });
    listening.collect()
}

/// A given socket for each worker. Several accept from one if there are fewer.
fn share_given(given: &[std::net::TcpListener], workers: &Workers) -> io::Result<Vec<TcpListener>> {
    let mut sockets = Vec::new();
    for (number, worker) in workers.all().iter().enumerate() {
        let _runtime = worker.enter();
        let socket = given[number % given.len()].try_clone()?;
        sockets.push(TcpListener::from_std(socket)?);
    }
    Ok(sockets)
}

fn not_listening(protocol: &'static str, address: SocketAddr, cause: io::Error) -> ServeError {
    ServeError::Listen {
        protocol,
        address,
        cause,
    }
}

/// Listens for requests of metrics.
fn listen_tcp(address: SocketAddr, runtime: &RuntimeHandle) -> Result<TcpListener, ServeError> {
    let listener = match runtime.has_tokio() {
        true => tcp_sockets::listen(&SystemSockets, address, TcpProtocol::Tcp),
        false => Err(io::ErrorKind::Unsupported.into()),
    };
    listener.map_err(|cause| not_listening("TCP", address, cause))
}
