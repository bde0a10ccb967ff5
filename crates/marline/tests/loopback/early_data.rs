//! Data before the handshake is complete.

use marline::{ConnectionEvent, Endpoint, TransportConfig};

use crate::setup::{Identity, LOOPBACK, NAME, echo, within_limit};

async fn exchange(client: &Endpoint, server: &Endpoint, early: bool) -> bool {
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    let connection = match connecting.into_0rtt() {
        Ok(connection) => {
            assert!(early, "no session is stored yet");
            connection
        }
        Err(connecting) => {
            assert!(!early, "the session is missing");
            within_limit(connecting).await.unwrap()
        }
    };
    let (mut send, mut recv) = within_limit(connection.open_bi()).await.unwrap();
    send.write_all(b"early").await.unwrap();
    send.finish().unwrap();
    assert_eq!(
        within_limit(recv.read_to_end(9)).await.unwrap(),
        &b"early"[..]
    );
    within_limit(connection.connected()).await.unwrap();
    // The session ticket follows the handshake.
    within_limit(connection.confirmed()).await.unwrap();
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
async fn early_data_is_accepted_on_resumption() {
    let identity = Identity::new();
    let server = Endpoint::server(identity.server(TransportConfig::default()), LOOPBACK).unwrap();
    serve(&server);
    let client = Endpoint::client(LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    assert!(!exchange(&client, &server, false).await);
    assert!(exchange(&client, &server, true).await);
}

#[tokio::test]
async fn rejected_early_data_is_sent_again() {
    let identity = Identity::new();
    let server = Endpoint::server(identity.server(TransportConfig::default()), LOOPBACK).unwrap();
    serve(&server);
    let client = Endpoint::client(LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(TransportConfig::default()));
    exchange(&client, &server, false).await;
    // With other ticket keys, the server cannot decrypt the client's session ticket.
    server.set_server_config(Some(identity.server(TransportConfig::default())));
    assert!(!exchange(&client, &server, true).await);
}

#[tokio::test]
async fn a_server_can_send_before_the_handshake_is_complete() {
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
    let (ours, _theirs) = within_limit(async { tokio::join!(connecting, speaking) }).await;
    let mut recv = within_limit(ours.unwrap().accept_uni()).await.unwrap();
    assert_eq!(
        within_limit(recv.read_to_end(9)).await.unwrap(),
        &b"welcome"[..]
    );
}
