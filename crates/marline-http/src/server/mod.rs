//! A web server: one service behind HTTP/3, HTTP/2 and HTTP/1.1 on one port number.
//!
//! ```text
//! UDP -> h3::listen  --\
//!                       > exchange::respond -> Site (files, or anything else)
//! TCP -> tcp::listen --/
//! ```

mod accept;
mod access_log;
mod admission;
mod buffers;
mod config;
mod descriptors;
mod exchange;
mod files;
mod generated;
mod h3;
mod idle;
mod metrics;
mod metrics_page;
mod prefix;
mod progress;
mod record;
mod resources;
mod shares;
mod stop;
mod tcp;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use marline::TransportConfig;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::access_log::AccessLog;
use self::admission::{Admission, ConnectionLimits};
use self::buffers::Buffers;
pub use self::config::{Protocols, ServerConfig, ServerLimits};
use self::descriptors::Descriptors;
pub use self::descriptors::raise_open_file_limit;
use self::files::OpenFiles;
pub use self::files::directory;
pub use self::generated::{GeneratedObject, generated};
pub use self::metrics::Metrics;
use self::resources::Resources;
use self::stop::Stop;
pub(crate) use self::tls::crypto_provider;
pub use self::tls::{Identity, IdentityError};
use crate::body::Body;
use crate::runtime::RuntimeHandle;
use crate::tasks::TaskSet;
use crate::{limits, transport};

/// The service that answers requests.
pub type Site = tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Why a server cannot start, or why it stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port is in use, or the address is not of this machine.
    #[error("cannot listen on {protocol} {address}: {cause}; choose another address or port")]
    Listen {
        /// TCP or UDP.
        protocol: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        cause: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
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
    address: SocketAddr,
    tcp: Option<tcp::Listener>,
    quic: Option<h3::Listener>,
    metrics_page: Option<(SocketAddr, TcpListener)>,
    context: Arc<Context>,
}

/// Stops a running server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle(Stop);

impl Handle {
    /// Accepts no new connections, and lets requests in progress finish within [`ServerLimits::shutdown_grace`].
    pub fn shut_down(&self) {
        self.0.stop();
    }
}

/// State that is shared by all connections.
struct Context {
    runtime: RuntimeHandle,
    site: Site,
    metrics: Arc<Metrics>,
    log: Option<AccessLog>,
    alt_svc: Option<http::HeaderValue>,
    slots: Arc<Semaphore>,
    /// Connections over TCP, of which each takes a file descriptor.
    admission: Admission,
    resources: Arc<Resources>,
    stop: Stop,
    /// The address of a QUIC endpoint that has failed.
    failed: OnceLock<SocketAddr>,
    limits: ServerLimits,
    transport: Arc<TransportConfig>,
}

impl Context {
    /// Stops the server because the endpoint at `address` has failed.
    fn fail(&self, address: SocketAddr) {
        // One failure is reported; it stops the server.
        let _ = self.failed.set(address);
        self.stop.stop();
    }
}

impl Server {
    /// Opens the sockets. Port 0 selects one that is free for both TCP and UDP.
    ///
    /// # Errors
    /// A port is in use, the certificate does not match the key, or there is no runtime.
    pub async fn bind(config: ServerConfig) -> Result<Self, ServeError> {
        let runtime = RuntimeHandle::new(config.runtime.clone()).map_err(ServeError::Runtime)?;
        let attempts = match config.listen.port() {
            0 => limits::PORT_ATTEMPTS,
            _ => 1,
        };
        let metrics = Arc::new(Metrics::of(&config.quic.transport));
        let mut attempt = 1;
        let Sockets { address, tcp, quic } = loop {
            match open_sockets(&config, &runtime, &metrics).await {
                Err(ServeError::Listen {
                    protocol: "UDP", ..
                }) if attempt < attempts => attempt += 1,
                sockets => break sockets?,
            }
        };
        let metrics_page = match config.metrics {
            None => None,
            Some(address) => {
                let socket = listen_tcp(address, &runtime).await?;
                Some((socket.local_addr().unwrap_or(address), socket))
            }
        };
        let alt_svc = quic.as_ref().and_then(|_| {
            http::HeaderValue::try_from(format!("h3=\":{}\"; ma=86400", address.port())).ok()
        });
        let limits = &config.limits;
        let open = Descriptors::of_process(limits.max_open_files, limits.max_connections);
        let resources = Arc::new(Resources {
            files: OpenFiles::new(open.files),
            buffers: Buffers::new(limits.max_buffered_bytes),
        });
        metrics.show(&resources, config.access_log.as_ref());
        let context = Context {
            runtime,
            site: config.site,
            metrics,
            log: config.access_log,
            alt_svc,
            slots: Arc::new(Semaphore::new(config.limits.max_connections)),
            admission: Admission::new(ConnectionLimits {
                total: open.connections,
                per_address: limits.max_connections_per_address,
                per_prefix: limits.max_connections_per_prefix,
            }),
            resources,
            stop: Stop::default(),
            failed: OnceLock::new(),
            limits: config.limits,
            transport: config.quic.transport,
        };
        Ok(Self {
            address,
            tcp,
            quic,
            metrics_page,
            context: Arc::new(context),
        })
    }

    /// The address on which it listens, for both TCP and UDP.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address of the metrics, if they are served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_page.as_ref().map(|(address, _)| *address)
    }

    /// The counters of the server.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.context.metrics)
    }

    /// A handle to stop it.
    pub fn handle(&self) -> Handle {
        Handle(self.context.stop.clone())
    }

    /// Serves until [`Handle::shut_down`], then lets requests in progress finish.
    ///
    /// # Errors
    /// The QUIC endpoint has failed. Requests over TCP had the time to finish that a shutdown gives them.
    pub async fn run(self) -> Result<(), ServeError> {
        let context = self.context;
        let mut on_tokio = JoinSet::new();
        let mut on_any = TaskSet::new(&context.runtime);
        let endpoint = self.quic.as_ref().map(h3::Listener::endpoint);
        if let Some(tcp) = self.tcp {
            on_tokio.spawn(tcp.run(Arc::clone(&context)));
        }
        if let Some(quic) = self.quic {
            let context = Arc::clone(&context);
            let address = self.address;
            on_any.spawn(async move {
                if quic.run(Arc::clone(&context)).await.is_err() {
                    context.fail(address);
                }
            });
        }
        if let Some((_, socket)) = self.metrics_page {
            let metrics = Arc::clone(&context.metrics);
            on_tokio.spawn(metrics_page::serve(socket, metrics, context.stop.stopped()));
        }
        context.stop.stopped().await;
        let finished = async {
            while on_any.join_next().await.is_some() {}
            while on_tokio.join_next().await.is_some() {}
        };
        let runtime = &context.runtime;
        if runtime
            .timeout(context.limits.shutdown_grace, finished)
            .await
            .is_err()
            && let Some(endpoint) = endpoint
        {
            // The remaining connections are closed, so that their samples reach the history store.
            endpoint.close(h3::NO_ERROR, b"");
            let _ = runtime
                .timeout(limits::CLOSE_TIMEOUT, endpoint.wait_idle())
                .await;
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
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The listening sockets of a server.
struct Sockets {
    /// The address of both.
    address: SocketAddr,
    tcp: Option<tcp::Listener>,
    quic: Option<h3::Listener>,
}

async fn open_sockets(
    config: &ServerConfig,
    runtime: &RuntimeHandle,
    metrics: &Metrics,
) -> Result<Sockets, ServeError> {
    let mut address = config.listen;
    let mut tcp = None;
    let tcp_protocols = config.protocols;
    if tcp_protocols.http1 || tcp_protocols.http2 {
        let socket = listen_tcp(address, runtime).await?;
        address = socket.local_addr().unwrap_or(address);
        tcp = Some(tcp::Listener::new(socket, config)?);
    }
    let mut quic = None;
    if config.protocols.http3 {
        let counting = metrics.observers(&config.quic.transport);
        let settings = transport::server_config(config, runtime, counting)?;
        let endpoint = transport::server_endpoint(config, settings.clone(), address, runtime)?;
        address = endpoint.local_addr();
        quic = Some(h3::Listener::new(endpoint, settings));
    }
    Ok(Sockets { address, tcp, quic })
}

async fn listen_tcp(
    address: SocketAddr,
    runtime: &RuntimeHandle,
) -> Result<TcpListener, ServeError> {
    let listener = match runtime.has_tokio() {
        true => TcpListener::bind(address).await,
        false => Err(io::ErrorKind::Unsupported.into()),
    };
    listener.map_err(|cause| ServeError::Listen {
        protocol: "TCP",
        address,
        cause,
    })
}
