//! What happens when the application's own code fails inside the endpoint.

use std::sync::Arc;

use marline::observe::events::{ConnectionState, ConnectionStateUpdated};
use marline::observe::{Event, Observer};
use marline::{ConnectError, ConnectionError, Instant, TransportConfig};

use crate::setup::{Identity, NAME, endpoints, soon};

#[derive(Debug)]
struct Bomb;

impl Observer for Bomb {
    fn on_event(&mut self, _now: Instant, event: &Event<'_>) {
        if let Event::ConnectionStateUpdated(ConnectionStateUpdated {
            new: ConnectionState::HandshakeComplete,
            ..
        }) = event
        {
            panic!("an observer that fails, as the test wants");
        }
    }
}

/// A panic ends the endpoint it happens in, and nobody waits for it any more.
#[tokio::test]
async fn a_panic_in_an_observer_ends_the_endpoint() {
    let (client, server) = endpoints();
    let identity = Identity::new();
    server.set_server_config(Some(identity.server(TransportConfig::default())));
    let mut config = identity.client(TransportConfig::default());
    config.observer = Some(Arc::new(|_| Some(Box::new(Bomb))));

    let connecting = client
        .connect_with(config.clone(), server.local_addr(), NAME)
        .unwrap();
    assert!(matches!(
        soon(connecting).await,
        Err(ConnectionError::LocallyClosed)
    ));
    soon(client.wait_idle()).await;
    assert!(matches!(
        client.connect_with(config, server.local_addr(), NAME),
        Err(ConnectError::EndpointClosed)
    ));
}
