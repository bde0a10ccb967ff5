//! Unreliable datagrams.

use bytes::Bytes;
use marline::{SendDatagramError, TransportConfig};

use crate::setup::{connect, endpoints, endpoints_with, within_limit};

#[tokio::test]
async fn datagrams_are_sent_in_both_directions() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    for _ in 0..20 {
        ours.send_datagram_wait("ping".into()).await.unwrap();
        assert_eq!(
            within_limit(theirs.recv_datagram()).await.unwrap(),
            &b"ping"[..]
        );
        theirs.send_datagram("pong".into()).unwrap();
        assert_eq!(
            within_limit(ours.recv_datagram()).await.unwrap(),
            &b"pong"[..]
        );
    }
}

#[tokio::test]
async fn datagrams_larger_than_a_packet_are_refused() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let max = ours.max_datagram_len().unwrap();
    assert!(matches!(
        ours.send_datagram(Bytes::from(vec![0; max + 1000])),
        Err(SendDatagramError::TooLarge { .. })
    ));
    ours.send_datagram(Bytes::from(vec![7; max])).unwrap();
    assert_eq!(
        within_limit(theirs.recv_datagram()).await.unwrap().len(),
        max
    );
}

#[tokio::test]
async fn a_full_send_buffer_blocks_until_it_drains() {
    let (client, server) = endpoints_with(TransportConfig {
        datagram_send_buffer: 5_000,
        ..TransportConfig::default()
    });
    let (ours, _theirs) = within_limit(connect(&client, &server)).await;
    let datagram = Bytes::from(vec![0; 1_000]);
    let mut taken = 0;
    while ours.send_datagram(datagram.clone()).is_ok() {
        taken += 1;
        assert!(taken < 6, "the buffer has no end");
    }
    for _ in 0..20 {
        within_limit(ours.send_datagram_wait(datagram.clone()))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn datagrams_are_refused_if_the_peer_does_not_support_them() {
    let (client, server) = endpoints_with(TransportConfig {
        datagram_receive_buffer: None,
        ..TransportConfig::default()
    });
    let (ours, _theirs) = within_limit(connect(&client, &server)).await;
    assert_eq!(ours.max_datagram_len(), None);
    assert!(matches!(
        ours.send_datagram("x".into()),
        Err(SendDatagramError::Unsupported)
    ));
}
