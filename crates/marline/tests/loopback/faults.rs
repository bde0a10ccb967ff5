//! Panics of the application's code inside an endpoint.

use std::sync::Arc;

use marline::observe::events::{ConnectionState, ConnectionStateUpdated};
use marline::observe::{Event, Observer};
use marline::{ConnectError, ConnectionError, Instant, TransportConfig};

use crate::setup::{Identity, NAME, endpoints, within_limit};

#[derive(Debug)]
struct PanickingObserver;

impl Observer for PanickingObserver {
    fn on_event(&mut self, _now: Instant, event: &Event<'_>) {
        if let Event::ConnectionStateUpdated(ConnectionStateUpdated {
            new: ConnectionState::HandshakeComplete,
            ..
        }) = event
        {
            panic!("this is a test");
        }
    }
}

/// A panic ends its endpoint, and all calls that wait for it.
#[tokio::test]
async fn a_panic_in_an_observer_ends_the_endpoint() {
    let (client, server) = endpoints();
    let identity = Identity::new();
    server.set_server_config(Some(identity.server(TransportConfig::default())));
    let mut config = identity.client(TransportConfig::default());
    config.observer = Some(Arc::new(|_| Some(Box::new(PanickingObserver))));

    let connecting = client
        .connect_with(config.clone(), server.local_addr(), NAME)
        .unwrap();
    assert!(matches!(
        within_limit(connecting).await,
        Err(ConnectionError::LocallyClosed)
    ));
    within_limit(client.wait_idle()).await;
    assert!(matches!(
        client.connect_with(config, server.local_addr(), NAME),
        Err(ConnectError::EndpointClosed)
    ));
}
