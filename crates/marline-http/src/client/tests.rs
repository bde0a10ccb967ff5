use std::net::{SocketAddr, UdpSocket};

use super::*;
use crate::pipes::{PipePolicy, PipesConfig, RrConfig};
use crate::server::{Identity, Server, ServerConfig, directory};

async fn server() -> SocketAddr {
    let root = tempfile::tempdir().unwrap();
    let site = directory(root.path(), false).unwrap();
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let config = ServerConfig::new(([127, 0, 0, 1], 0).into(), identity, site);
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    address
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_address_of_a_host_is_left_for_the_next_at_once() {
    // Receives from one address only, so that its port is closed for all others.
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
    closed.connect("127.0.0.2:9").unwrap();
    let addresses = [closed.local_addr().unwrap(), server().await];
    // Longer than the test may take: an attempt that waits for timers would exceed it.
    let client = Client::new(ClientConfig {
        trust: Trust::Insecure,
        connect_timeout: std::time::Duration::from_secs(3600),
        ..ClientConfig::default()
    })
    .unwrap();
    let origin = parse_url("https://localhost/", HttpVersion::Http3)
        .unwrap()
        .origin;
    let request = ConnectRequest {
        id: 0,
        origin: &origin,
        addresses: &addresses,
        connections: 1,
        alternative: &[],
        proxy: None,
    };
    let connecting = client.connect_over(&client.transport, request);
    let limit = crate::limits::HANDSHAKE_TIMEOUT / 2;
    let connection = tokio::time::timeout(limit, connecting)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(connection.report().paths[0].remote, addresses[1]);
}

#[cfg(target_os = "linux")]
#[test]
fn trusted_certificates_in_a_pipe_are_refused_rather_than_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let (refused, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let config = ClientConfig {
            trust: Trust::File(pipe),
            ..ClientConfig::default()
        };
        let verifier = config.verifier();
        let _ = refused.send(verifier.map(drop).map_err(|error| error.to_string()));
    });
    let error = answer.recv_timeout(std::time::Duration::from_secs(10));
    let error = error.expect("it does not wait").unwrap_err();
    assert!(error.contains("it is not a regular file"), "{error}");
}

fn client_with_pools(version: HttpVersion) -> Client {
    let policy = PipePolicy::RoundRobin(RrConfig::default());
    let config = ClientConfig {
        trust: Trust::Insecure,
        version,
        pipes: Some(PipesConfig::new(policy)),
        ..ClientConfig::default()
    };
    Client::new(config).unwrap()
}

fn origin(number: usize) -> Origin {
    let url = format!("https://host{number}.test/");
    parse_url(&url, HttpVersion::Http3).unwrap().origin
}

#[tokio::test]
async fn pools_beyond_the_limit_take_the_place_of_unused_ones_only() {
    let client = client_with_pools(HttpVersion::Http3);
    let pool = |number| client.pool(&origin(number)).unwrap();
    let mut used: Vec<_> = (0..MAX_POOLS).map(pool).collect();
    let is_listed = |number| Arc::ptr_eq(&pool(number), &pool(number));
    let len = || client.pools.lock().unwrap().len();
    // Both references exist at a time: an address is not used twice.
    let further = [pool(MAX_POOLS), pool(MAX_POOLS)];
    assert!(!Arc::ptr_eq(&further[0], &further[1]));
    assert_eq!(len(), MAX_POOLS);

    used.truncate(MAX_POOLS - 1);
    assert!(is_listed(MAX_POOLS));
    assert_eq!(len(), MAX_POOLS);
    for (number, used) in used.iter().enumerate() {
        assert!(Arc::ptr_eq(used, &pool(number)), "{number}");
    }
}

#[tokio::test]
async fn pools_are_of_http3_only() {
    let client = client_with_pools(HttpVersion::Http2);
    assert!(client.pool(&origin(0)).is_none());
}
