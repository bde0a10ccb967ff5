//! A client that moves to a socket from which a server cannot be reached at first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use marline::proto::Transmit;
use marline::{Connection, Endpoint, Runtime, TransportConfig};
use marline_sim::identity::Identity;

use crate::setup::{Filtered, Network, WIFI, client_config, run, server_config};

/// Sends a message to the server and back.
async fn echo(ours: &Connection, theirs: &Connection) {
    let answering = async {
        let (mut send, mut recv) = theirs.accept_bi().await.unwrap();
        let message = recv.read_to_end(usize::MAX).await.unwrap();
        send.write_all(&message).await.unwrap();
        send.finish().unwrap();
    };
    let asking = async {
        let (mut send, mut recv) = ours.open_bi().await.unwrap();
        send.write_all(b"here").await.unwrap();
        send.finish().unwrap();
        let answer = recv.read_to_end(usize::MAX).await.unwrap();
        assert_eq!(answer[..], *b"here");
    };
    tokio::join!(answering, asking);
}

async fn connect(network: &Network, client: &Endpoint, port: u16) -> (Endpoint, [Connection; 2]) {
    let at = network.server.at(port);
    let config = server_config(TransportConfig::default());
    let server = network.server.endpoint(at, Some(config)).unwrap();
    let connecting = client.connect(at, Identity::NAME).unwrap();
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (ours, theirs) = tokio::join!(connecting, accepting);
    (server, [ours.unwrap(), theirs])
}

/// The former socket is closed once the new one has received, though only for the other connection.
#[test]
fn a_connection_that_cannot_be_reached_from_the_next_socket_at_first_goes_on_from_there_later() {
    run(async |network| {
        let client = network.client_endpoint();
        client.set_default_client_config(client_config(TransportConfig::default()));
        let (_far, [ours, theirs]) = connect(network, &client, 4433).await;
        let (_near, [others_ours, others_theirs]) = connect(network, &client, 4434).await;
        ours.confirmed().await.unwrap();
        others_ours.confirmed().await.unwrap();

        let is_blocked = Arc::new(AtomicBool::new(true));
        let next = Arc::new(Filtered {
            socket: network.client.bind((WIFI, 5000).into()).unwrap(),
            // Datagrams to the far server are lost.
            send: {
                let (is_blocked, far) = (Arc::clone(&is_blocked), network.server.at(4433));
                move |transmit: &Transmit, _: &[u8]| {
                    let is_lost =
                        transmit.tuple.remote == far && is_blocked.load(Ordering::Relaxed);
                    is_lost.then_some(Ok(()))
                }
            },
        });
        client.rebind_to(next).unwrap();
        echo(&others_ours, &others_theirs).await;
        network.client.sleep(Duration::from_secs(10)).await;
        is_blocked.store(false, Ordering::Relaxed);
        echo(&ours, &theirs).await;
        assert_eq!(theirs.remote_address(), client.local_addr());
    });
}
