//! The HTTP/3 server without sockets, for tests that act as the peer.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use marline_h3::Config;
use tokio::sync::{Semaphore, watch};

use super::admission::{Admission, ConnectionLimits};
use super::buffers::Buffers;
use super::current::{Current, Replaceable};
use super::open_files::OpenFiles;
use super::record::Recorder;
use super::resources::Resources;
use super::stop::Stop;
use super::{Context, Protocols, ServerLimits, Site};
use crate::http3::Carrier;
use crate::runtime::RuntimeHandle;

/// Serves one connection as [`Server::run`](super::Server::run) does after the handshake, until it ends, or
/// until `stopping` is true and the requests in progress have ended. If its sender is dropped, `stopping`
/// counts as true.
///
/// # Panics
/// No tokio runtime is running.
pub async fn serve<C: Carrier>(connection: C, site: Site, mut stopping: watch::Receiver<bool>) {
    let runtime = RuntimeHandle::new(None).expect("a tokio runtime is running");
    let stop = Stop::default();
    let context = Arc::new(Context {
        runtime: runtime.clone(),
        metrics: Arc::default(),
        alt_svc: None,
        slots: Arc::new(Semaphore::new(1)),
        admission: Admission::new(ConnectionLimits {
            total: 1,
            per_address: 1,
            per_prefix: 1,
        }),
        resources: Arc::new(Resources {
            files: OpenFiles::new(100),
            buffers: Buffers::new(1 << 20),
        }),
        stop: stop.clone(),
        failed: OnceLock::new(),
        hurry: Stop::default(),
        protocols: Protocols::default(),
        state: None,
        endpoints: Vec::new(),
        tcp_connections: AtomicU64::new(0),
        current: Replaceable::new(Current {
            site,
            log: None,
            limits: ServerLimits::default(),
            transport: Arc::default(),
            tls: None,
        }),
    });
    let recorder = Arc::new(Recorder {
        runtime,
        metrics: Arc::clone(&context.metrics),
        client: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        connection: String::new(),
        progress: None,
        quic: None,
    });
    let config = Config::default();
    let mut serving = pin!(super::h3::serve(
        &context,
        &recorder,
        connection,
        &config,
        || false
    ));
    tokio::select! {
        biased;
        _ = stopping.wait_for(|stopping| *stopping) => stop.stop(),
        () = &mut serving => return,
    }
    serving.await;
}
