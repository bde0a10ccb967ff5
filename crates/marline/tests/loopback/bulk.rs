//! Many bytes and many connections.

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::setup::{connect, echo, endpoints, pattern, soon};

const LEN: usize = 20_000_000;

/// Twenty megabytes each way at the same time, compared byte by byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ways() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    tokio::spawn(echo(theirs));
    let data = Bytes::from(pattern(LEN));
    let (mut send, mut recv) = soon(ours.open_bi()).await.unwrap();
    let outgoing = data.clone();
    let writer = tokio::spawn(async move {
        send.write_chunk(outgoing).await.unwrap();
        send.finish().unwrap();
        send.stopped().await.unwrap();
    });
    let mut at = 0;
    while let Some(chunk) = soon(recv.read_chunk(usize::MAX)).await.unwrap() {
        assert!(chunk == data[at..at + chunk.len()], "differs after {at}");
        at += chunk.len();
    }
    assert_eq!(at, LEN);
    soon(writer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_connections() {
    let (client, server) = endpoints();
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
    soon(tasks.join_all()).await;
    client.close(0, b"");
    soon(client.wait_idle()).await;
    assert_eq!(client.open_connections(), 0);
    soon(server.wait_idle()).await;
}

/// A connection's first data follows the handshake of another at once.
#[tokio::test]
async fn one_after_the_other() {
    let (client, server) = endpoints();
    for _ in 0..20 {
        let (ours, theirs) = soon(connect(&client, &server)).await;
        let serving = tokio::spawn(echo(theirs));
        let (mut send, mut recv) = soon(ours.open_bi()).await.unwrap();
        send.write_all(b"x").await.unwrap();
        send.finish().unwrap();
        assert_eq!(soon(recv.read_to_end(1)).await.unwrap(), &b"x"[..]);
        ours.close(0, b"");
        soon(serving).await.unwrap();
    }
}
