//! Events of connections.

use marline::{ConnectionError, ConnectionEvent};

use crate::setup::{connect, endpoints, within_limit};

#[tokio::test]
async fn every_receiver_gets_the_last_event() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    let mut watchers = [theirs.events(), theirs.events()];
    ours.close(3, b"");
    for watcher in &mut watchers {
        loop {
            match within_limit(watcher.next()).await {
                Some(ConnectionEvent::Closed(error)) => {
                    assert!(matches!(
                        error,
                        ConnectionError::PeerApplication { code: 3, .. }
                    ));
                    break;
                }
                Some(_) => {}
                None => panic!("the last event is missing"),
            }
        }
        assert!(within_limit(watcher.next()).await.is_none());
    }
    assert!(within_limit(theirs.events().next()).await.is_none());
}

#[tokio::test]
async fn both_ends_report_equal_state() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    assert_eq!(ours.original_destination(), theirs.original_destination());
    assert_eq!(ours.server_name().as_deref(), Some("localhost"));
    assert_eq!(theirs.server_name().as_deref(), Some("localhost"));
    assert_eq!(ours.peer_certificates().map(|chain| chain.len()), Some(1));
    assert_eq!(theirs.peer_certificates(), None);
    within_limit(ours.confirmed()).await.unwrap();
    within_limit(theirs.confirmed()).await.unwrap();
    assert!(!theirs.is_replayable());
    assert!(ours.update_keys());
    ours.send_datagram("with new keys".into()).unwrap();
    assert_eq!(
        within_limit(theirs.recv_datagram()).await.unwrap(),
        &b"with new keys"[..]
    );
    theirs
        .send_datagram("answered with new keys".into())
        .unwrap();
    within_limit(ours.recv_datagram()).await.unwrap();
    assert!(ours.stats().udp_sent.datagrams > 0);
}
