//! How connections and endpoints end.

use std::time::Duration;

use marline::{ConnectionError, Endpoint, ReadError, TransportConfig, WriteError};

use crate::setup::{Identity, LOOPBACK, NAME, connect, endpoints, soon};

#[tokio::test]
async fn the_peer_learns_code_and_reason() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    let waiting = tokio::spawn({
        let theirs = theirs.clone();
        async move { theirs.accept_uni().await.unwrap_err() }
    });
    ours.close(42, b"enough");
    assert!(matches!(
        ours.close_reason(),
        Some(ConnectionError::LocallyClosed)
    ));
    let error = soon(theirs.closed()).await;
    assert!(matches!(
        error,
        ConnectionError::PeerApplication { code: 42, ref reason } if reason == &b"enough"[..]
    ));
    assert!(matches!(
        soon(waiting).await.unwrap(),
        ConnectionError::PeerApplication { .. }
    ));
    soon(client.wait_idle()).await;
    soon(server.wait_idle()).await;
}

#[tokio::test]
async fn everything_fails_after_the_end() {
    let (client, server) = endpoints();
    let (ours, _theirs) = soon(connect(&client, &server)).await;
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
async fn what_arrived_before_the_end_can_still_be_read() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    let mut send = ours.open_uni().await.unwrap();
    send.write_all(b"last words").await.unwrap();
    send.finish().unwrap();
    soon(send.stopped()).await.unwrap();
    ours.close(0, b"");
    soon(theirs.closed()).await;
    let mut recv = theirs.accept_uni().await.unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), &b"last words"[..]);
}

#[tokio::test]
async fn dropping_the_last_handle_closes() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    let send = ours.open_uni().await.unwrap();
    drop(ours);
    assert!(theirs.close_reason().is_none());
    drop(send);
    assert!(matches!(
        soon(theirs.closed()).await,
        ConnectionError::PeerApplication { code: 0, .. }
    ));
}

#[tokio::test]
async fn dropping_the_server_closes_its_connections() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    drop(server);
    assert!(matches!(
        soon(ours.closed()).await,
        ConnectionError::PeerApplication { code: 0, .. }
    ));
    assert!(matches!(
        soon(theirs.closed()).await,
        ConnectionError::LocallyClosed
    ));
}

#[tokio::test]
async fn a_closed_endpoint_accepts_nobody() {
    let (client, server) = endpoints();
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.accept().await.is_none() }
    });
    tokio::task::yield_now().await;
    server.close(7, b"over");
    assert!(soon(waiting).await.unwrap());
    assert!(soon(server.accept()).await.is_none());
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    assert!(matches!(
        soon(connecting).await,
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
        soon(ignored).await,
        Err(ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout)
    ));
    server.set_server_config(Some(identity.server(transport)));
    soon(connect(&client, &server)).await;
}

#[tokio::test]
async fn an_untrusted_server_is_an_error_on_both_sides() {
    let (client, server) = endpoints();
    client.set_default_client_config(Identity::new().client(TransportConfig::default()));
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (ours, theirs) = soon(async { tokio::join!(connecting, accepting) }).await;
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
async fn nobody_there_times_out() {
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
        soon(connecting).await,
        Err(ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout)
    ));
    soon(client.wait_idle()).await;
}

#[test]
fn connections_end_with_their_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (ours, theirs) = runtime.block_on(async {
        let (client, server) = endpoints();
        let pair = soon(connect(&client, &server)).await;
        std::mem::forget((client, server));
        pair
    });
    drop(runtime);
    assert!(ours.close_reason().is_some());
    assert!(theirs.close_reason().is_some());
}
