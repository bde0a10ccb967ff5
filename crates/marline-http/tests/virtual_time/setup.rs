//! The network of these tests, with servers and clients on its hosts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use marline::TransportConfig;
use marline_http::client::{Client, ClientConfig, Trust};
use marline_http::server::{
    GeneratedObject, Handle, Identity, Protocols, Server, ServerConfig, Site, generated,
};
use marline_http::transport::QuicOptions;
use marline_sim::{Host, SimBuilder, SimLink};

/// The servers' port.
pub(crate) const PORT: u16 = 443;

/// A limit of virtual time, above what any of these tests takes.
const LIMIT: Duration = Duration::from_secs(7200);

/// Two servers, and a client behind an access link of 20 Mbit/s and a round-trip time of 40 ms, without losses.
pub(crate) struct Network {
    pub(crate) client: Host,
    pub(crate) servers: [Host; 2],
    pub(crate) access: SimLink,
}

/// Runs `test` on a new [`Network`] to its end.
pub(crate) fn run<T>(test: impl AsyncFnOnce(&Network) -> T) -> T {
    let mut sim = SimBuilder::new(1)
        .router("router")
        .link(
            "access",
            ["client", "router"],
            "rate=20mbps,rtt=40ms,buffer=2MB",
        )
        .link("first", ["router", "server"], "")
        .link("second", ["router", "static"], "")
        .build()
        .unwrap();
    let network = Network {
        client: sim.host("client").unwrap(),
        servers: ["server", "static"].map(|name| sim.host(name).unwrap()),
        access: sim.link("access").unwrap(),
    };
    sim.run(test(&network), LIMIT).unwrap()
}

fn quic() -> QuicOptions {
    quic_of(TransportConfig::default())
}

/// Options without random choices that would change sizes.
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

/// A running server.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
}

/// Starts a server of `objects`.
pub(crate) async fn serve(host: &Host, objects: BTreeMap<String, GeneratedObject>) -> Serving {
    let site = generated(objects, Some(Arc::new(host.clone()))).unwrap();
    serve_site(host, site).await
}

/// Starts a server of `site`.
pub(crate) async fn serve_site(host: &Host, site: Site) -> Serving {
    serve_with(host, site, quic()).await
}

/// Starts a server of `site` with these options of QUIC.
pub(crate) async fn serve_with(host: &Host, site: Site, quic: QuicOptions) -> Serving {
    serve_as(host, site, |config| config.quic = quic).await
}

/// Starts a server of `site` with these settings.
pub(crate) async fn serve_as(
    host: &Host,
    site: Site,
    set: impl FnOnce(&mut ServerConfig),
) -> Serving {
    let identity = Identity::repeatable(vec!["example.test".to_owned()]).unwrap();
    let mut config = ServerConfig::new(([0, 0, 0, 0], PORT).into(), identity, site);
    config.protocols = Protocols {
        http1: false,
        http2: false,
        ..Protocols::default()
    };
    config.quic = quic();
    config.runtime = Some(Arc::new(host.clone()));
    set(&mut config);
    let server = Server::bind(config).await.unwrap();
    let handle = server.handle();
    host.run(async { server.run().await.unwrap() });
    Serving {
        address: host.at(PORT),
        handle,
    }
}

/// A client that resolves `hosts` to these addresses.
pub(crate) fn client(
    host: &Host,
    hosts: impl IntoIterator<Item = (&'static str, SocketAddr)>,
) -> Arc<Client> {
    client_of(host, hosts, TransportConfig::default())
}

/// The same with a configuration of QUIC.
pub(crate) fn client_of(
    host: &Host,
    hosts: impl IntoIterator<Item = (&'static str, SocketAddr)>,
    transport: TransportConfig,
) -> Arc<Client> {
    client_as(host, hosts, |config| config.quic = quic_of(transport))
}

/// The same with these settings.
pub(crate) fn client_as(
    host: &Host,
    hosts: impl IntoIterator<Item = (&'static str, SocketAddr)>,
    set: impl FnOnce(&mut ClientConfig),
) -> Arc<Client> {
    let hosts = hosts.into_iter().map(|(host, at)| (host.to_owned(), at));
    let mut config = ClientConfig {
        trust: Trust::Insecure,
        quic: quic_of(TransportConfig::default()),
        resolve: hosts.collect(),
        runtime: Some(Arc::new(host.clone())),
        ..ClientConfig::default()
    };
    set(&mut config);
    Arc::new(Client::new(config).unwrap())
}
