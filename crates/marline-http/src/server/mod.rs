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
mod keys;
mod metrics;
mod monitor;
mod ocsp;
mod open_files;
mod paced;
mod panics;
mod passage;
mod progress;
mod qlogs;
mod quic;
mod received;
mod record;
mod refusal;
mod reload;
mod resources;
mod shares;
mod slots;
mod sockets;
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
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use marline::{Instant, QuicLb};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::access_log::{AccessLog, AccessLogFormat};
pub(crate) use self::account::Account;
use self::admission::{Admission, ConnectionLimits};
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
use self::keys::{rotate_keys, rotate_shared_keys, tickets};
pub use self::metrics::{Metrics, MetricsSource, SiteName};
pub use self::monitor::{StatusHealth, UpstreamHealth, serve_metrics};
pub use self::ocsp::{CertificateStatus, StatusError, StatusQuery};
pub use self::panics::report_panics_in_one_line;
pub(crate) use self::passage::ProxiedContent;
use self::qlogs::Logs;
pub use self::record::PassedOn;
pub use self::refusal::{Refusal, RouteName};
use self::reload::QuicEndpoint;
pub use self::reload::{Handle, OpenConnections};
use self::resources::Resources;
use self::sockets::{Opening, Sockets, open_metrics, open_sockets};
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
