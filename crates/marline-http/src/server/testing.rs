//! The HTTP/3 server without sockets, for tests that are themselves the peer.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use super::record::Recorder;
use super::{Context, Site};
use crate::transport::Carrier;

/// Serves one connection as [`Server::run`](super::Server::run) does after the handshake, until it
/// ends or `stopping` turns true and what is under way is done. Without its sender, `stopping`
/// counts as true.
pub async fn serve<C: Carrier>(connection: C, site: Site, stopping: watch::Receiver<bool>) {
    let context = Arc::new(Context {
        site,
        metrics: Arc::default(),
        log: None,
        alt_svc: None,
        slots: Arc::new(Semaphore::new(1)),
        stopping,
    });
    let recorder = Arc::new(Recorder {
        metrics: Arc::clone(&context.metrics),
        log: None,
        client: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        connection: String::new(),
    });
    super::h3::serve(&context, &recorder, connection, || false).await;
}
