//! A server with several workers at one address.

use std::net::UdpSocket;
use std::sync::Arc;

use marline::coordination::bundle::BundleConfig;
use marline::runtime::reuse_port;
use marline::{
    Connection, Endpoint, EndpointConfig, PassOn, PassedDatagram, QuicLb, QuicLbConfig,
    QuicLbFormat, Runtime as _, ServerConfig, ServerId, TokioRuntime, TransportConfig, Worker,
};

use tokio::task::JoinSet;

use crate::setup::{Identity, LOOPBACK, NAME, echo, pattern, within_limit};

const WORKERS: usize = 3;

/// The endpoints of `sockets`, whose connections are echoed.
fn serve(config: &EndpointConfig, server: &ServerConfig, sockets: Vec<UdpSocket>) -> Vec<Endpoint> {
    serve_once_started(config, server, sockets, true)
}

/// A server that reads its sockets if it `receives`, and otherwise once it is started.
fn serve_once_started(
    config: &EndpointConfig,
    server: &ServerConfig,
    sockets: Vec<UdpSocket>,
    receives: bool,
) -> Vec<Endpoint> {
    let runtime = Arc::new(TokioRuntime::current().unwrap());
    let workers = sockets.into_iter().map(|socket| Worker {
        socket: runtime.wrap(socket).unwrap(),
        runtime: Arc::clone(&runtime) as _,
        receives,
    });
    let endpoints = Endpoint::workers(config, server, workers.collect()).unwrap();
    for endpoint in &endpoints {
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            while let Some(connecting) = endpoint.accept().await {
                tokio::spawn(async move {
                    if let Ok(connection) = connecting.await {
                        echo(connection).await;
                    }
                });
            }
        });
    }
    endpoints
}

fn sockets() -> Vec<UdpSocket> {
    reuse_port::bind(LOOPBACK, WORKERS).unwrap()
}

fn config() -> EndpointConfig {
    EndpointConfig::from_seed([5; 32])
}

/// The same behind a load balancer.
fn balanced() -> EndpointConfig {
    let server_id = ServerId::new(&[1, 2]).unwrap();
    let format = QuicLbFormat::new(0, 2, 14, Some([9; 16])).unwrap();
    let quic_lb = QuicLbConfig::new(format, server_id, true).unwrap();
    EndpointConfig {
        quic_lb: Some(Arc::new(QuicLb::new(quic_lb, &[5; 32]))),
        ..config()
    }
}

/// A client with a port of its own.
fn client(identity: &Identity) -> Endpoint {
    let client = Endpoint::client(LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    client
}

/// Sends `content` and gets it back.
async fn exchange(connection: &Connection, content: &[u8]) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(content).await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(content.len()).await.unwrap(), content);
}

fn connections(endpoints: &[Endpoint]) -> Vec<usize> {
    endpoints.iter().map(Endpoint::open_connections).collect()
}

#[tokio::test]
async fn clients_whose_port_changes_lose_no_request() {
    let runs = [
        (true, config()),
        (false, config()),
        (true, balanced()),
        (false, balanced()),
    ];
    for (is_steered, config) in runs {
        let identity = Identity::new();
        let sockets = sockets();
        if is_steered {
            let workers = u8::try_from(WORKERS).unwrap();
            let (key, field) = (&config.worker_key, config.worker_field());
            if let Err(error) = reuse_port::steer(&sockets[0], key, field, workers) {
                println!("skipped: the kernel accepts no program for a shared port: {error}");
                continue;
            }
        }
        let server = identity.server(TransportConfig::default());
        let endpoints = serve(&config, &server, sockets);
        let content = pattern(20_000);
        let address = endpoints[0].local_addr();
        let mut served = JoinSet::new();
        for _ in 0..8 {
            let client = client(&identity);
            let content = content.clone();
            served.spawn(async move {
                let connection = client.connect(address, NAME).unwrap().await.unwrap();
                connection.confirmed().await.unwrap();
                for _ in 0..6 {
                    exchange(&connection, &content).await;
                    client.rebind(UdpSocket::bind(LOOPBACK).unwrap()).unwrap();
                }
                exchange(&connection, &content).await;
            });
        }
        within_limit(served.join_all()).await;
        let passed: u64 = endpoints.iter().map(|one| one.stats().passed_on).sum();
        // Two of three new ports are another worker's.
        assert!(is_steered || passed > 0, "nothing was passed on");
    }
}

#[tokio::test]
async fn limits_hold_for_all_workers_together() {
    for is_total in [true, false] {
        let identity = Identity::new();
        let mut config = config();
        let mut server = identity.server(TransportConfig::default());
        config.clients.evict_idle = false;
        match is_total {
            true => server.max_connections = 20,
            false => config.clients.max_connections_per_address = 20,
        }
        let endpoints = serve(&config, &server, sockets());
        let mut accepted = Vec::new();
        for _ in 0..30 {
            let client = client(&identity);
            let connecting = client.connect(endpoints[0].local_addr(), NAME).unwrap();
            if let Ok(connection) = within_limit(connecting).await {
                accepted.push((client, connection));
            }
        }
        assert_eq!(accepted.len(), 20);
        let open = connections(&endpoints);
        assert!(open.iter().all(|open| *open < 20), "{open:?}");
    }
}

#[tokio::test]
async fn a_full_server_evicts_idle_connections_of_any_worker() {
    let identity = Identity::new();
    let mut server = identity.server(TransportConfig::default());
    server.max_connections = 6;
    let endpoints = serve(&config(), &server, sockets());
    let mut clients = Vec::new();
    for _ in 0..24 {
        let client = client(&identity);
        let connecting = client.connect(endpoints[0].local_addr(), NAME).unwrap();
        let connection = within_limit(connecting).await.unwrap();
        within_limit(connection.confirmed()).await.unwrap();
        exchange(&connection, b"request").await;
        clients.push((client, connection));
    }
    let evicted: u64 = endpoints.iter().map(|one| one.stats().evicted).sum();
    assert_eq!(evicted, 18);
}

#[tokio::test]
async fn all_connections_of_a_bundle_are_on_one_worker() {
    let identity = Identity::new();
    let transport = TransportConfig {
        bundle: Some(Arc::new(BundleConfig::default())),
        ..TransportConfig::default()
    };
    let endpoints = serve(&config(), &identity.server(transport), sockets());
    let mut clients = Vec::new();
    for _ in 0..12 {
        let client = client(&identity);
        let connecting = client.connect(endpoints[0].local_addr(), NAME).unwrap();
        clients.push((client, within_limit(connecting).await.unwrap()));
    }
    let mut open = connections(&endpoints);
    open.sort_unstable();
    assert_eq!(open, [0, 0, 12]);
}

/// Passes datagrams on to the server of another process, which is in this one here.
#[derive(Debug)]
struct ToOld(Endpoint);

impl PassOn for ToOld {
    fn pass_on(&self, datagram: PassedDatagram) {
        self.0.deliver(datagram);
    }
}

#[tokio::test]
async fn a_server_that_takes_over_sockets_passes_on_what_is_for_the_one_before() {
    let identity = Identity::new();
    let server = identity.server(TransportConfig::default());
    let old = serve(&config(), &server, sockets());
    let address = old[0].local_addr();
    let mut before = Vec::new();
    for _ in 0..6 {
        let client = client(&identity);
        let connection = within_limit(client.connect(address, NAME).unwrap()).await;
        let connection = connection.unwrap();
        within_limit(connection.confirmed()).await.unwrap();
        before.push((client, connection));
    }
    // The keys are the same, and the random numbers are not.
    let config = EndpointConfig {
        rng_seed: [6; 32],
        ..config()
    };
    let duplicates = old.iter().map(|endpoint| endpoint.duplicate_socket());
    let duplicates = duplicates.map(Result::unwrap).collect();
    let new = serve_once_started(&config, &server, duplicates, false);
    // Only one of them answers: the other would reset the connection.
    let last = client(&identity);
    let connection = within_limit(last.connect(address, NAME).unwrap()).await;
    let connection = connection.unwrap();
    within_limit(exchange(&connection, b"old")).await;
    before.push((last, connection));
    for endpoint in &old {
        endpoint.stop_receiving().await;
    }
    for endpoint in &old {
        endpoint.start_receiving();
    }
    for (_, connection) in &before {
        within_limit(exchange(connection, b"old again")).await;
    }
    for endpoint in &old {
        endpoint.stop_receiving().await;
    }
    for endpoint in &new {
        endpoint.set_predecessor(Some(Arc::new(ToOld(old[0].clone()))));
        endpoint.start_receiving();
    }
    for _ in 0..6 {
        let client = client(&identity);
        let connection = within_limit(client.connect(address, NAME).unwrap()).await;
        within_limit(exchange(&connection.unwrap(), b"new")).await;
    }
    let content = pattern(20_000);
    for (client, connection) in &before {
        within_limit(exchange(connection, &content)).await;
        client.rebind(UdpSocket::bind(LOOPBACK).unwrap()).unwrap();
        within_limit(exchange(connection, &content)).await;
    }
    let accepted: u64 = new.iter().map(|one| one.stats().accepted).sum();
    assert_eq!(accepted, 6);
}
