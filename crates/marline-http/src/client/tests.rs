use std::net::{SocketAddr, UdpSocket};

use super::*;
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
    assert!(error.contains("it is no regular file"), "{error}");
}
