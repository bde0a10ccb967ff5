//! What a watcher is told.

use marline::{ConnectionError, ConnectionEvent};

use crate::setup::{connect, endpoints, soon};

#[tokio::test]
async fn every_watcher_sees_the_end() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    let mut watchers = [theirs.events(), theirs.events()];
    ours.close(3, b"");
    for watcher in &mut watchers {
        loop {
            match soon(watcher.next()).await {
                Some(ConnectionEvent::Closed(error)) => {
                    assert!(matches!(
                        error,
                        ConnectionError::PeerApplication { code: 3, .. }
                    ));
                    break;
                }
                Some(_) => {}
                None => panic!("the end was not told"),
            }
        }
        assert!(soon(watcher.next()).await.is_none());
    }
    assert!(soon(theirs.events().next()).await.is_none());
}

#[tokio::test]
async fn both_ends_know_the_same() {
    let (client, server) = endpoints();
    let (ours, theirs) = soon(connect(&client, &server)).await;
    assert_eq!(ours.original_destination(), theirs.original_destination());
    assert_eq!(ours.server_name().as_deref(), Some("localhost"));
    assert_eq!(theirs.server_name().as_deref(), Some("localhost"));
    assert_eq!(ours.peer_certificates().map(|chain| chain.len()), Some(1));
    assert_eq!(theirs.peer_certificates(), None);
    soon(ours.confirmed()).await.unwrap();
    soon(theirs.confirmed()).await.unwrap();
    assert!(!theirs.is_replayable());
    assert!(ours.update_keys());
    ours.send_datagram("with new keys".into()).unwrap();
    assert_eq!(
        soon(theirs.recv_datagram()).await.unwrap(),
        &b"with new keys"[..]
    );
    theirs
        .send_datagram("answered with new keys".into())
        .unwrap();
    soon(ours.recv_datagram()).await.unwrap();
    assert!(ours.stats().udp_sent.datagrams > 0);
}
