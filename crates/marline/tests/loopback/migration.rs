//! A client that moves.

use crate::setup::{LOOPBACK, connect, echo, endpoints, pattern, within_limit};

#[tokio::test]
async fn a_client_keeps_its_connection_across_sockets() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    tokio::spawn(echo(theirs.clone()));
    let old = client.local_addr();
    for round in 0..3 {
        let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
        let data = pattern(100_000 + round);
        let writing = async {
            send.write_all(&data[..50_000]).await.unwrap();
            client
                .rebind(std::net::UdpSocket::bind(LOOPBACK).unwrap())
                .unwrap();
            send.write_all(&data[50_000..]).await.unwrap();
            send.finish().unwrap();
        };
        let (answer, ()) =
            within_limit(async { tokio::join!(recv.read_to_end(usize::MAX), writing) }).await;
        assert_eq!(answer.unwrap(), data);
    }
    assert_ne!(client.local_addr(), old);
    assert_eq!(theirs.remote_address(), client.local_addr());
}
