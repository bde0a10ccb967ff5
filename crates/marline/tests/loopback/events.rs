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
