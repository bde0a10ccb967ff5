//! Futures that are dropped before they are ready lose no stream and no data.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use marline::TransportConfig;

use crate::setup::{connect, endpoints, endpoints_with, within_limit};

/// Polls once and drops.
fn abandon(future: impl Future) {
    let future = pin!(future);
    assert!(
        future
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
}

#[tokio::test]
async fn dropped_accept_and_read_futures_lose_nothing() {
    let (client, server) = endpoints();
    abandon(server.accept());
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    abandon(theirs.accept_uni());
    abandon(theirs.recv_datagram());
    let mut send = ours.open_uni().await.unwrap();
    send.write_all(b"a").await.unwrap();
    let mut recv = within_limit(theirs.accept_uni()).await.unwrap();
    assert_eq!(
        within_limit(recv.read_chunk(9)).await.unwrap().unwrap(),
        &b"a"[..]
    );
    abandon(recv.read_chunk(9));
    abandon(send.stopped());
    send.write_all(b"b").await.unwrap();
    send.finish().unwrap();
    assert_eq!(
        within_limit(recv.read_chunk(9)).await.unwrap().unwrap(),
        &b"b"[..]
    );
    assert_eq!(within_limit(send.stopped()).await.unwrap(), None);
}

/// A dropped future does not take a stream credit from one that still waits.
#[tokio::test]
async fn a_dropped_open_future_leaves_its_stream_to_others() {
    let (client, server) = endpoints_with(TransportConfig {
        max_concurrent_uni_streams: 1,
        ..TransportConfig::default()
    });
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let mut first = within_limit(ours.open_uni()).await.unwrap();
    abandon(ours.open_uni());
    let waiting = tokio::spawn({
        let ours = ours.clone();
        async move { ours.open_uni().await }
    });
    tokio::task::yield_now().await;
    abandon(ours.open_uni());
    first.write_all(b"x").await.unwrap();
    first.finish().unwrap();
    let mut recv = within_limit(theirs.accept_uni()).await.unwrap();
    within_limit(recv.read_to_end(1)).await.unwrap();
    drop(recv);
    within_limit(waiting).await.unwrap().unwrap();
}
