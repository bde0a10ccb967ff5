//! Unreliable datagrams.

use bytes::Bytes;
use marline::{SendDatagramError, TransportConfig};

use crate::setup::{connect, endpoints, endpoints_with, soon};

#[tokio::test]
async fn both_ways() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    for _ in 0..20 {
        ours.send_datagram_wait("ping".into()).await.unwrap();
        assert_eq!(soon(theirs.recv_datagram()).await.unwrap(), &b"ping"[..]);
        theirs.send_datagram("pong".into()).unwrap();
        assert_eq!(soon(ours.recv_datagram()).await.unwrap(), &b"pong"[..]);
    }
}

#[tokio::test]
async fn no_larger_than_a_packet() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    let max = ours.max_datagram_len().unwrap();
    assert!(matches!(
        ours.send_datagram(Bytes::from(vec![0; max + 1000])),
        Err(SendDatagramError::TooLarge { .. })
    ));
    ours.send_datagram(Bytes::from(vec![7; max])).unwrap();
    assert_eq!(soon(theirs.recv_datagram()).await.unwrap().len(), max);
}

#[tokio::test]
async fn a_full_buffer_blocks_and_opens_again() {
    let (client, server) = endpoints_with(TransportConfig {
        datagram_send_buffer: 5_000,
        ..TransportConfig::default()
    });
    let (ours, _theirs) = soon(connect(&client, &server)).await;
    let datagram = Bytes::from(vec![0; 1_000]);
    let mut taken = 0;
    while ours.send_datagram(datagram.clone()).is_ok() {
        taken += 1;
        assert!(taken < 6, "the buffer has no end");
    }
    for _ in 0..20 {
        soon(ours.send_datagram_wait(datagram.clone()))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn refused_when_the_peer_takes_none() {
    let (client, server) = endpoints_with(TransportConfig {
        datagram_receive_buffer: None,
        ..TransportConfig::default()
    });
    let (ours, _theirs) = soon(connect(&client, &server)).await;
    assert_eq!(ours.max_datagram_len(), None);
    assert!(matches!(
        ours.send_datagram("x".into()),
        Err(SendDatagramError::Unsupported)
    ));
}
