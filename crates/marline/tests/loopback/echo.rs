//! One stream, and the handshake before it.

use std::net::{Ipv4Addr, Ipv6Addr};

use marline::{ConnectError, Endpoint, TransportConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setup::{Identity, LOOPBACK, NAME, connect, echo, endpoints, within_limit};

async fn echo_over_one_stream() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    assert_eq!(ours.alpn().as_deref(), Some(&b"test"[..]));
    assert_eq!(theirs.remote_address(), client.local_addr());
    assert_eq!(ours.remote_address(), server.local_addr());
    tokio::spawn(echo(theirs));

    let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
    within_limit(send.write_all(b"hello")).await.unwrap();
    send.finish().unwrap();
    assert_eq!(
        within_limit(recv.read_to_end(100)).await.unwrap(),
        &b"hello"[..]
    );
    assert_eq!(within_limit(send.stopped()).await.unwrap(), None);
    assert!(within_limit(recv.read_chunk(1)).await.unwrap().is_none());
}

#[tokio::test]
async fn echo_on_a_single_threaded_runtime() {
    echo_over_one_stream().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn echo_on_a_multi_threaded_runtime() {
    echo_over_one_stream().await;
}

#[tokio::test]
async fn streams_implement_tokio_io() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    tokio::spawn(echo(theirs));
    let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
    AsyncWriteExt::write_all(&mut send, b"tokio").await.unwrap();
    send.shutdown().await.unwrap();
    send.shutdown().await.unwrap();
    let mut answer = String::new();
    within_limit(recv.read_to_string(&mut answer))
        .await
        .unwrap();
    assert_eq!(answer, "tokio");
}

#[tokio::test]
async fn a_wildcard_server_responds_from_the_destination_address() {
    let identity = Identity::new();
    let any = (Ipv4Addr::UNSPECIFIED, 0).into();
    let server = Endpoint::server(identity.server(TransportConfig::default()), any).unwrap();
    let client = Endpoint::client(any).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    let port = server.local_addr().port();
    for host in [1, 2, 77] {
        let addr = (Ipv4Addr::new(127, 0, 0, host), port).into();
        let connecting = client.connect(addr, NAME).unwrap();
        let (ours, theirs) = within_limit(async {
            tokio::join!(connecting, async { server.accept().await.unwrap().await })
        })
        .await;
        assert_eq!(ours.unwrap().remote_address(), addr);
        tokio::spawn(echo(theirs.unwrap()));
    }
}

#[tokio::test]
async fn dual_stack_sockets_reach_ipv4() {
    let identity = Identity::new();
    let Ok(client) = Endpoint::client((Ipv6Addr::UNSPECIFIED, 0).into()) else {
        eprintln!("skipped: this machine has no IPv6");
        return;
    };
    let server = Endpoint::server(identity.server(TransportConfig::default()), LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    let (ours, _theirs) = within_limit(connect(&client, &server)).await;
    assert_eq!(ours.remote_address(), server.local_addr());
}

#[tokio::test]
async fn impossible_connections_are_refused_with_the_reason() {
    let client = Endpoint::client(LOOPBACK).unwrap();
    let server = (Ipv4Addr::LOCALHOST, 1).into();
    assert!(matches!(
        client.connect(server, NAME),
        Err(ConnectError::NoClientConfig)
    ));
    client.set_default_client_config(Identity::new().client(TransportConfig::default()));
    assert!(matches!(
        client.connect((Ipv6Addr::LOCALHOST, 1).into(), NAME),
        Err(ConnectError::UnreachableFamily(_))
    ));
    assert!(matches!(
        client.connect(server, "not a name"),
        Err(ConnectError::Invalid(_))
    ));
    client.close(0, b"");
    assert!(matches!(
        client.connect(server, NAME),
        Err(ConnectError::EndpointClosed)
    ));
}
