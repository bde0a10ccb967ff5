//! A server and a client, each on a host of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use marline::{Runtime, TransportConfig};
use marline_http::client::{Client, ClientConfig, Trust};
use marline_http::server::{
    GeneratedObject, Handle, Identity, Protocols, Server, ServerConfig, Site, generated,
};
use marline_http::transport::QuicOptions;

use crate::world::World;

/// The servers' port.
const PORT: u16 = 443;

fn quic() -> QuicOptions {
    quic_of(TransportConfig::default())
}

/// Nothing is chosen at random that has a size.
pub(crate) fn quic_of(transport: TransportConfig) -> QuicOptions {
    QuicOptions {
        transport: Arc::new(TransportConfig {
            grease: false,
            ..transport
        }),
        ..QuicOptions::default()
    }
}

pub(crate) fn object(size: u64, think: Duration) -> GeneratedObject {
    GeneratedObject {
        size,
        content_type: HeaderValue::from_static("application/octet-stream"),
        think,
        content: None,
    }
}

/// Starts a server of these objects on a host of its own.
pub(crate) async fn serve(
    runtime: Arc<dyn Runtime>,
    objects: BTreeMap<String, GeneratedObject>,
) -> (SocketAddr, Handle) {
    let site = generated(objects, Some(Arc::clone(&runtime))).unwrap();
    serve_site(runtime, site).await
}

/// Starts a server of this site on a host of its own.
pub(crate) async fn serve_site(runtime: Arc<dyn Runtime>, site: Site) -> (SocketAddr, Handle) {
    serve_like(runtime, site, quic()).await
}

/// The same with a QUIC of its own.
pub(crate) async fn serve_like(
    runtime: Arc<dyn Runtime>,
    site: Site,
    quic: QuicOptions,
) -> (SocketAddr, Handle) {
    let identity = Identity::repeatable(vec!["example.test".to_owned()]).unwrap();
    let mut config = ServerConfig::new(([0, 0, 0, 0], PORT).into(), identity, site);
    config.protocols = Protocols {
        http1: false,
        http2: false,
        ..Protocols::default()
    };
    config.quic = quic;
    config.runtime = Some(Arc::clone(&runtime));
    let server = Server::bind(config).await.unwrap();
    let (address, handle) = (server.local_addr(), server.handle());
    runtime.spawn(Box::pin(server.run()));
    (address, handle)
}

/// A client that finds `hosts`.
pub(crate) fn client(
    runtime: Arc<dyn Runtime>,
    hosts: impl IntoIterator<Item = (&'static str, SocketAddr)>,
) -> Arc<Client> {
    let hosts = hosts.into_iter().map(|(host, at)| (host.to_owned(), at));
    let config = ClientConfig {
        trust: Trust::Anybody,
        quic: quic(),
        resolve: hosts.collect(),
        runtime: Some(runtime),
        ..ClientConfig::default()
    };
    Arc::new(Client::new(config).unwrap())
}

/// 20 Mbit/s, 40 ms there and back.
pub(crate) fn world() -> World {
    World::new(Duration::from_millis(20), 2_500_000)
}
