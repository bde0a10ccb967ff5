//! Many streams, and the ends of streams.

use marline::{ReadError, TransportConfig, WriteError};
use tokio::task::JoinSet;

use crate::setup::{connect, echo, endpoints, endpoints_with, pattern, within_limit};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_are_opened_within_a_limit_of_ten() {
    let (client, server) = endpoints_with(TransportConfig {
        max_concurrent_bidi_streams: 10,
        ..TransportConfig::default()
    });
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    tokio::spawn(echo(theirs));
    let mut tasks = JoinSet::new();
    for number in 0..1000_u32 {
        let connection = ours.clone();
        tasks.spawn(async move {
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(&number.to_be_bytes()).await.unwrap();
            send.finish().unwrap();
            assert_eq!(
                recv.read_to_end(4).await.unwrap(),
                &number.to_be_bytes()[..]
            );
        });
    }
    within_limit(tasks.join_all()).await;
}

#[tokio::test]
async fn dropping_an_unfinished_stream_resets_it() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let mut send = ours.open_uni().await.unwrap();
    send.write_all(b"half").await.unwrap();
    let mut recv = within_limit(theirs.accept_uni()).await.unwrap();
    assert_eq!(
        within_limit(recv.read_chunk(9)).await.unwrap().unwrap(),
        &b"half"[..]
    );
    drop(send);
    for _ in 0..2 {
        assert!(matches!(
            within_limit(recv.read_chunk(9)).await,
            Err(ReadError::Reset(0))
        ));
    }
}

#[tokio::test]
async fn dropping_a_reader_stops_the_writer() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let mut send = ours.open_uni().await.unwrap();
    send.write_all(b"unwanted").await.unwrap();
    drop(within_limit(theirs.accept_uni()).await.unwrap());
    assert_eq!(within_limit(send.stopped()).await.unwrap(), Some(0));
    assert!(matches!(
        within_limit(send.write_all(b"more")).await,
        Err(WriteError::Stopped(0))
    ));
}

/// A peer may stop a request that it has answered before the request has ended.
#[tokio::test]
async fn a_stream_that_was_stopped_can_be_finished() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    for is_acknowledged in [false, true] {
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(b"enough").await.unwrap();
        drop(within_limit(theirs.accept_uni()).await.unwrap());
        assert_eq!(within_limit(send.stopped()).await.unwrap(), Some(0));
        if is_acknowledged {
            // The peer has acknowledged the reset with an end that was sent after it.
            let mut later = ours.open_uni().await.unwrap();
            later.finish().unwrap();
            let _theirs = within_limit(theirs.accept_uni()).await.unwrap();
            assert_eq!(within_limit(later.stopped()).await.unwrap(), None);
        }
        send.finish().unwrap();
    }
}

#[tokio::test]
async fn error_codes_reach_the_peer() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let (mut send, mut recv) = ours.open_bi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let (mut their_send, mut their_recv) = within_limit(theirs.accept_bi()).await.unwrap();
    their_recv.stop(11).unwrap();
    assert!(their_recv.stop(11).is_err());
    assert_eq!(within_limit(send.stopped()).await.unwrap(), Some(11));
    their_send.reset(22);
    assert!(matches!(
        within_limit(recv.read_chunk(1)).await,
        Err(ReadError::Reset(22))
    ));
    assert!(matches!(
        within_limit(their_recv.read_chunk(1)).await,
        Err(ReadError::Closed)
    ));
    assert!(their_send.finish().is_err());
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_by_a_blocked_writer() {
    let (client, server) = endpoints_with(TransportConfig {
        stream_receive_window: Some(4096),
        max_stream_receive_window: 4096,
        send_buffer: 4096,
        ..TransportConfig::default()
    });
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let data = pattern(200_000);
    let expected = data.clone();
    let writer = tokio::spawn(async move {
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        send.stopped().await.unwrap();
    });
    let mut recv = within_limit(theirs.accept_uni()).await.unwrap();
    assert_eq!(
        within_limit(recv.read_to_end(200_000)).await.unwrap(),
        expected
    );
    within_limit(writer).await.unwrap();
}

#[tokio::test]
async fn read_to_end_enforces_its_limit() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let mut send = ours.open_uni().await.unwrap();
    send.write_all(&pattern(1000)).await.unwrap();
    send.finish().unwrap();
    let mut recv = within_limit(theirs.accept_uni()).await.unwrap();
    assert!(within_limit(recv.read_to_end(999)).await.is_err());
}
