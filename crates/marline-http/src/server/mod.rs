//! A web server: one service behind HTTP/3, HTTP/2 and HTTP/1.1 on one port number.
//!
//! ```text
//! UDP -> h3::listen  --\
//!                       > exchange::respond -> Site (files, or anything else)
//! TCP -> tcp::listen --/
//! ```

mod config;
mod exchange;
mod files;
mod h3;
mod idle;
mod metrics;
mod metrics_page;
mod priority;
mod record;
mod tcp;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use self::config::{Protocols, ServerConfig};
pub use self::files::directory;
pub use self::metrics::Metrics;
pub use self::record::AccessLog;
pub(crate) use self::tls::crypto_provider;
pub use self::tls::{Identity, IdentityError};
use crate::body::Body;
use crate::{limits, transport};

/// What answers requests.
pub type Site = tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another program has the port, or the address is not this machine's.
    #[error("cannot listen on {protocol} {address}: {cause}; choose another address or port")]
    Listen {
        /// TCP or UDP.
        protocol: &'static str,
        /// Where.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The QUIC settings do not fit together.
    #[error("cannot set up QUIC: {0}")]
    Quic(String),
}

/// A server whose sockets are open and which answers once [`run`](Self::run).
pub struct Server {
    address: SocketAddr,
    tcp: Option<tcp::Listener>,
    quic: Option<h3::Listener>,
    metrics_page: Option<(SocketAddr, TcpListener)>,
    context: Arc<Context>,
    stop: watch::Sender<bool>,
}

/// Asks a running server to stop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle(watch::Sender<bool>);

impl Handle {
    /// Accept nothing new, finish what is under way, at most [`limits::SHUTDOWN_GRACE`] long.
    pub fn shut_down(&self) {
        self.0.send_replace(true);
    }
}

/// What all connections share.
struct Context {
    site: Site,
    metrics: Arc<Metrics>,
    log: Option<AccessLog>,
    alt_svc: Option<http::HeaderValue>,
    slots: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl Server {
    /// Opens the sockets. A listening port of 0 finds one that is free for both TCP and UDP.
    ///
    /// # Errors
    /// A port is taken or the certificate does not fit.
    pub async fn bind(config: ServerConfig) -> Result<Self, ServeError> {
        let attempts = match config.listen.port() {
            0 => limits::PORT_ATTEMPTS,
            _ => 1,
        };
        let mut attempt = 1;
        let (address, tcp, quic) = loop {
            match open_sockets(&config).await {
                Err(ServeError::Listen {
                    protocol: "UDP", ..
                }) if attempt < attempts => attempt += 1,
                sockets => break sockets?,
            }
        };
        let metrics_page = match config.metrics {
            None => None,
            Some(address) => {
                let socket = listen_tcp(address).await?;
                Some((socket.local_addr().unwrap_or(address), socket))
            }
        };
        let (stop, stopping) = watch::channel(false);
        let alt_svc = quic.as_ref().and_then(|_| {
            http::HeaderValue::try_from(format!("h3=\":{}\"; ma=86400", address.port())).ok()
        });
        let context = Context {
            site: config.site,
            metrics: Arc::default(),
            log: config.access_log,
            alt_svc,
            slots: Arc::new(Semaphore::new(config.max_connections)),
            stopping,
        };
        Ok(Self {
            address,
            tcp,
            quic,
            metrics_page,
            context: Arc::new(context),
            stop,
        })
    }

    /// Where it listens, for both TCP and UDP.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where the metrics are, if anywhere.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_page.as_ref().map(|(address, _)| *address)
    }

    /// What the server counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.context.metrics)
    }

    /// A way to stop it.
    pub fn handle(&self) -> Handle {
        Handle(self.stop.clone())
    }

    /// Serves until [`Handle::shut_down`], then lets requests under way finish.
    pub async fn run(self) {
        let mut stopping = self.context.stopping.clone();
        let mut listeners = JoinSet::new();
        if let Some(tcp) = self.tcp {
            listeners.spawn(tcp.run(Arc::clone(&self.context)));
        }
        if let Some(quic) = self.quic {
            listeners.spawn(quic.run(Arc::clone(&self.context)));
        }
        if let Some((_, socket)) = self.metrics_page {
            let metrics = Arc::clone(&self.context.metrics);
            listeners.spawn(metrics_page::serve(socket, metrics, stopping.clone()));
        }
        stopped(&mut stopping).await;
        let _ = timeout(limits::SHUTDOWN_GRACE, async {
            while listeners.join_next().await.is_some() {}
        })
        .await;
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Waits until the server is asked to stop, or is gone.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

type Sockets = (SocketAddr, Option<tcp::Listener>, Option<h3::Listener>);

async fn open_sockets(config: &ServerConfig) -> Result<Sockets, ServeError> {
    let mut address = config.listen;
    let mut tcp = None;
    let tcp_protocols = config.protocols;
    if tcp_protocols.http1 || tcp_protocols.http2 {
        let socket = listen_tcp(address).await?;
        address = socket.local_addr().unwrap_or(address);
        tcp = Some(tcp::Listener::new(socket, config)?);
    }
    let mut quic = None;
    if config.protocols.http3 {
        let endpoint = transport::server_endpoint(config, address)?;
        address = endpoint.local_addr();
        quic = Some(h3::Listener::new(endpoint));
    }
    Ok((address, tcp, quic))
}

async fn listen_tcp(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address)
        .await
        .map_err(|cause| ServeError::Listen {
            protocol: "TCP",
            address,
            cause,
        })
}
