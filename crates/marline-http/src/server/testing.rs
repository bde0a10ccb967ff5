//! The server without sockets, for tests that act as the peer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use http::Version;
use marline_h3::Config;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc, watch};

use super::admission::{Admission, ConnectionLimits};
use super::challenges::Challenges;
use super::current::{Current, Replaceable};
use super::monitor::Activity;
use super::progress::Progress;
use super::record::Recorder;
use super::resources::{Chunk, Origin, Resources};
use super::stop::Stop;
use super::tcp::{ClientConnection, Deliveries, Outbox, Reset, Tunnels};
use super::{ClientRules, Context, Logs, Protocols, ServerLimits, Site, TrustedProxies};
use crate::http3::QuicTransport;
use crate::limits;
use crate::runtime::RuntimeHandle;

/// The address of every client.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Serves one connection of HTTP/3 as [`Server::run`](super::Server::run) does after the handshake, until it ends, or
/// until `stopping` is true and the requests in progress have ended. If its sender is dropped, `stopping`
/// counts as true.
///
/// # Panics
/// No tokio runtime is running.
pub async fn serve<C: QuicTransport>(
    connection: C,
    site: Site,
    mut stopping: watch::Receiver<bool>,
) {
    let context = context(site);
    let recorder = Arc::new(Recorder {
        runtime: context.runtime.clone(),
        metrics: Arc::clone(&context.metrics),
        client: CLIENT,
        connection: String::new(),
        alt_svc: None,
        tls: OnceLock::new(),
        progress: None,
        quic: None,
        activity: Activity::default(),
    });
    let config = Config::default();
    let mut serving = pin!(super::h3::serve(
        &context,
        &recorder,
        connection,
        &config,
        || None
    ));
    tokio::select! {
        biased;
        _ = stopping.wait_for(|stopping| *stopping) => context.stop.stop(),
        () = &mut serving => return,
    }
    serving.await;
}

/// Serves one connection of HTTP/2 or HTTP/1.1 as [`Server::run`](super::Server::run) does after the handshake of TLS,
/// until it ends, or until `stopping` is true and the requests in progress have ended. If its sender is dropped,
/// `stopping` counts as true.
///
/// # Panics
/// No tokio runtime is running.
pub async fn serve_stream<S>(
    stream: S,
    version: Version,
    site: Site,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let context = context(site);
    let progress = Progress::new(&context.runtime, limits::MIN_PROGRESS_BYTES);
    let progress = Arc::new(progress);
    let stop = context.stop.clone();
    let chunk = Chunk::of(limits::TCP_CHUNK_BYTES);
    let deliveries = Deliveries::new(Arc::clone(&progress));
    let connection = ClientConnection {
        client: CLIENT,
        origin: Origin::new(&context, CLIENT.ip(), chunk, None),
        alt_svc: None,
        id: 1,
        outbox: Outbox::new(deliveries.clone()),
        deliveries,
        progress,
        tunnels: Tunnels::new(mpsc::channel(1).0.downgrade(), Reset::default()),
        reset: Reset::default(),
        tls: None,
        context,
    };
    let mut serving = pin!(connection.serve_http(Box::new(stream), version));
    tokio::select! {
        biased;
        _ = stopping.wait_for(|stopping| *stopping) => stop.stop(),
        _ = &mut serving => return,
    }
    serving.await;
}

/// The state of a server of one connection.
fn context(site: Site) -> Arc<Context> {
    let runtime = RuntimeHandle::new(None).expect("a tokio runtime is running");
    let one = ConnectionLimits {
        total: 1,
        per_address: 1,
        per_prefix: 1,
    };
    Arc::new(Context {
        admission: Admission::new(one, &runtime),
        started: runtime.now(),
        runtime,
        metrics: Arc::default(),
        leaving: Semaphore::new(limits::LEAVING_CONNECTIONS),
        slots: Arc::new(Semaphore::new(1)),
        max_connections: 1,
        resources: Arc::new(Resources::new(100, 1 << 20)),
        stop: Stop::default(),
        failed: OnceLock::new(),
        hurry: Stop::default(),
        cut: Stop::default(),
        #[cfg(target_os = "linux")]
        takeover: super::upgrade::Takeover::default(),
        protocols: Protocols::default(),
        state: None,
        shared: None,
        quic_lb: None,
        challenges: Challenges::default(),
        endpoints: Vec::new(),
        runtimes: Vec::new(),
        logs: Logs::new(0, &ServerLimits::default()),
        tcp_connections: AtomicU64::new(0),
        current: Replaceable::new(Current {
            site,
            log: None,
            limits: ServerLimits::default(),
            trusted: TrustedProxies::default(),
            transport: Arc::default(),
            client_rules: ClientRules::default(),
            tls: None,
        }),
    })
}
