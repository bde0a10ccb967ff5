//! Large transfers and many connections.

use bytes::Bytes;
use marline::TransportConfig;
use tokio::task::JoinSet;

use crate::setup::{TIME_LIMIT, connect, echo, endpoints, endpoints_with, pattern, within_limit};

const LEN: usize = 20_000_000;

/// Twenty megabytes in each direction at the same time, compared byte by byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_transfers_in_both_directions_arrive_unaltered() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    tokio::spawn(echo(theirs));
    let data = Bytes::from(pattern(LEN));
    let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
    let outgoing = data.clone();
    let writer = tokio::spawn(async move {
        send.write_chunk(outgoing).await.unwrap();
        send.finish().unwrap();
        send.stopped().await.unwrap();
    });
    let mut at = 0;
    while let Some(chunk) = within_limit(recv.read_chunk(usize::MAX)).await.unwrap() {
        assert!(chunk == data[at..at + chunk.len()], "differs after {at}");
        at += chunk.len();
    }
    assert_eq!(at, LEN);
    within_limit(writer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_connections_share_an_endpoint() {
    // They share the processor as well.
    let (client, server) = endpoints_with(TransportConfig {
        handshake_timeout: TIME_LIMIT,
        ..TransportConfig::default()
    });
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connecting) = accepting.accept().await {
            tokio::spawn(async move { echo(connecting.await.unwrap()).await });
        }
    });
    let mut tasks = JoinSet::new();
    for number in 0..100_u32 {
        let connecting = client.connect(server.local_addr(), "localhost").unwrap();
        tasks.spawn(async move {
            let connection = connecting.await.unwrap();
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            let data = pattern(10_000 + number as usize);
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            assert_eq!(recv.read_to_end(20_000).await.unwrap(), data);
        });
    }
    within_limit(tasks.join_all()).await;
    client.close(0, b"");
    within_limit(client.wait_idle()).await;
    assert_eq!(client.open_connections(), 0);
    within_limit(server.wait_idle()).await;
}

/// The first data of a connection directly follows the handshake of another.
#[tokio::test]
async fn connections_can_follow_each_other_at_once() {
    let (client, server) = endpoints();
    for _ in 0..20 {
        let (ours, theirs) = within_limit(connect(&client, &server)).await;
        let serving = tokio::spawn(echo(theirs));
        let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
        send.write_all(b"x").await.unwrap();
        send.finish().unwrap();
        assert_eq!(within_limit(recv.read_to_end(1)).await.unwrap(), &b"x"[..]);
        ours.close(0, b"");
        within_limit(serving).await.unwrap();
    }
}
