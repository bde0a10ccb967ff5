//! Data before the handshake is complete.

use marline::{ConnectionEvent, Endpoint, TransportConfig};

use crate::setup::{Identity, LOOPBACK, NAME, echo, soon};

async fn exchange(client: &Endpoint, server: &Endpoint, early: bool) -> bool {
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    let connection = match connecting.into_0rtt() {
        Ok(connection) => {
            assert!(early, "no session can be remembered yet");
            connection
        }
        Err(connecting) => {
            assert!(!early, "the session was forgotten");
            soon(connecting).await.unwrap()
        }
    };
    let (mut send, mut recv) = soon(connection.open_bi()).await.unwrap();
    send.write_all(b"early").await.unwrap();
    send.finish().unwrap();
    assert_eq!(soon(recv.read_to_end(9)).await.unwrap(), &b"early"[..]);
    soon(connection.connected()).await.unwrap();
    // The ticket follows the handshake.
    soon(connection.confirmed()).await.unwrap();
    connection.early_data_accepted()
}

fn serve(server: &Endpoint) {
    let server = server.clone();
    tokio::spawn(async move {
        while let Some(connecting) = server.accept().await {
            let connection = connecting.into_0rtt().unwrap();
            tokio::spawn(echo(connection));
        }
    });
}

#[tokio::test]
async fn a_remembered_server_takes_it() {
    let identity = Identity::new();
    let server = Endpoint::server(identity.server(TransportConfig::default()), LOOPBACK).unwrap();
    serve(&server);
    let client = Endpoint::client(LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    assert!(!exchange(&client, &server, false).await);
    assert!(exchange(&client, &server, true).await);
}

#[tokio::test]
async fn what_is_rejected_is_sent_again() {
    let identity = Identity::new();
    let server = Endpoint::server(identity.server(TransportConfig::default()), LOOPBACK).unwrap();
    serve(&server);
    let client = Endpoint::client(LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    exchange(&client, &server, false).await;
    // Other ticket keys: the server cannot read what the client remembers.
    server.set_server_config(Some(identity.server(TransportConfig::default())));
    assert!(!exchange(&client, &server, true).await);
}

#[tokio::test]
async fn a_server_may_speak_before_the_client_is_known() {
    let identity = Identity::new();
    let server = Endpoint::server(identity.server(TransportConfig::default()), LOOPBACK).unwrap();
    let client = Endpoint::client(LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    let speaking = async {
        let connection = server.accept().await.unwrap().into_0rtt().unwrap();
        let mut events = connection.events();
        let mut send = connection.open_uni().await.unwrap();
        send.write_all(b"welcome").await.unwrap();
        send.finish().unwrap();
        assert!(matches!(
            events.next().await,
            Some(ConnectionEvent::Connected)
        ));
        connection
    };
    let (ours, _theirs) = soon(async { tokio::join!(connecting, speaking) }).await;
    let mut recv = soon(ours.unwrap().accept_uni()).await.unwrap();
    assert_eq!(soon(recv.read_to_end(9)).await.unwrap(), &b"welcome"[..]);
}
