//! The end of connections and endpoints.

use std::time::Duration;

use marline::{ConnectionError, Endpoint, ReadError, TransportConfig, WriteError};

use crate::setup::{Identity, LOOPBACK, NAME, connect, endpoints, within_limit};

#[tokio::test]
async fn the_peer_receives_code_and_reason() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let waiting = tokio::spawn({
        let theirs = theirs.clone();
        async move { theirs.accept_uni().await.unwrap_err() }
    });
    ours.close(42, b"enough");
    assert!(matches!(
        ours.close_reason(),
        Some(ConnectionError::LocallyClosed)
    ));
    let error = within_limit(theirs.closed()).await;
    assert!(matches!(
        error,
        ConnectionError::PeerApplication { code: 42, ref reason } if reason == &b"enough"[..]
    ));
    assert!(matches!(
        within_limit(waiting).await.unwrap(),
        ConnectionError::PeerApplication { .. }
    ));
    within_limit(client.wait_idle()).await;
    within_limit(server.wait_idle()).await;
}

#[tokio::test]
async fn all_calls_fail_after_the_end() {
    let (client, server) = endpoints();
    let (ours, _theirs) = within_limit(connect(&client, &server)).await;
    let (mut send, mut recv) = ours.open_bi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    ours.close(1, b"");
    assert!(matches!(
        send.write(b"y").await,
        Err(WriteError::ConnectionLost(ConnectionError::LocallyClosed))
    ));
    assert!(matches!(
        recv.read_chunk(1).await,
        Err(ReadError::ConnectionLost(ConnectionError::LocallyClosed))
    ));
    assert!(send.stopped().await.is_err());
    assert!(ours.open_bi().await.is_err());
    assert!(ours.accept_bi().await.is_err());
    assert!(ours.recv_datagram().await.is_err());
    assert!(ours.send_datagram("x".into()).is_err());
    ours.close(2, b"again");
    ours.ping();
    ours.update_keys();
}

#[tokio::test]
async fn data_that_arrived_before_the_end_can_be_read() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let mut send = ours.open_uni().await.unwrap();
    send.write_all(b"last words").await.unwrap();
    send.finish().unwrap();
    within_limit(send.stopped()).await.unwrap();
    ours.close(0, b"");
    within_limit(theirs.closed()).await;
    let mut recv = theirs.accept_uni().await.unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), &b"last words"[..]);
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let send = ours.open_uni().await.unwrap();
    drop(ours);
    assert!(theirs.close_reason().is_none());
    drop(send);
    assert!(matches!(
        within_limit(theirs.closed()).await,
        ConnectionError::PeerApplication { code: 0, .. }
    ));
}

#[tokio::test]
async fn dropping_the_server_closes_its_connections() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    drop(server);
    assert!(matches!(
        within_limit(ours.closed()).await,
        ConnectionError::PeerApplication { code: 0, .. }
    ));
    assert!(matches!(
        within_limit(theirs.closed()).await,
        ConnectionError::LocallyClosed
    ));
}

#[tokio::test]
async fn a_closed_endpoint_accepts_no_connections() {
    let (client, server) = endpoints();
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.accept().await.is_none() }
    });
    tokio::task::yield_now().await;
    server.close(7, b"over");
    assert!(within_limit(waiting).await.unwrap());
    assert!(within_limit(server.accept()).await.is_none());
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    assert!(matches!(
        within_limit(connecting).await,
        Err(ConnectionError::PeerTransport { .. })
    ));
}

#[tokio::test]
async fn an_endpoint_without_server_config_does_not_answer_until_it_has_one() {
    let identity = Identity::new();
    let transport = TransportConfig::default();
    let (client, server) = endpoints();
    client.set_default_client_config(identity.client(transport.clone()));
    server.set_server_config(None);
    let ignored = client
        .connect_with(identity.client(impatient()), server.local_addr(), NAME)
        .unwrap();
    assert!(matches!(
        within_limit(ignored).await,
        Err(ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout)
    ));
    server.set_server_config(Some(identity.server(transport)));
    within_limit(connect(&client, &server)).await;
}

#[tokio::test]
async fn an_untrusted_server_is_an_error_on_both_sides() {
    let (client, server) = endpoints();
    client.set_default_client_config(Identity::new().client(TransportConfig::default()));
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (ours, theirs) = within_limit(async { tokio::join!(connecting, accepting) }).await;
    assert!(matches!(ours, Err(ConnectionError::Transport(_))));
    assert!(matches!(theirs, Err(ConnectionError::PeerTransport { .. })));
}

fn impatient() -> TransportConfig {
    TransportConfig {
        handshake_timeout: Duration::from_millis(200),
        ..TransportConfig::default()
    }
}

#[tokio::test]
async fn connecting_to_an_unused_port_times_out() {
    let identity = Identity::new();
    let client = Endpoint::client(LOOPBACK).unwrap();
    let nobody = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let connecting = client
        .connect_with(
            identity.client(impatient()),
            nobody.local_addr().unwrap(),
            NAME,
        )
        .unwrap();
    assert!(matches!(
        within_limit(connecting).await,
        Err(ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout)
    ));
    within_limit(client.wait_idle()).await;
}

#[test]
fn connections_end_with_their_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (ours, theirs) = runtime.block_on(async {
        let (client, server) = endpoints();
        let pair = within_limit(connect(&client, &server)).await;
        std::mem::forget((client, server));
        pair
    });
    drop(runtime);
    assert!(ours.close_reason().is_some());
    assert!(theirs.close_reason().is_some());
}
