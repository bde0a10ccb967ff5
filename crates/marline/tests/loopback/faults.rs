//! Panics of the application's code inside an endpoint.

use std::sync::Arc;

use marline::observe::events::{ConnectionState, ConnectionStateUpdated};
use marline::observe::{Event, Observer};
use marline::{ConnectError, ConnectionError, EndpointFailure, Instant, TransportConfig};

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
        Err(ConnectionError::EndpointFailed(EndpointFailure::Panicked))
    ));
    within_limit(client.wait_idle()).await;
    assert!(matches!(
        client.connect_with(config, server.local_addr(), NAME),
        Err(ConnectError::EndpointClosed)
    ));
}

/// Nobody waits for a server whose task has panicked.
#[tokio::test]
async fn a_panic_of_a_server_ends_accept_and_its_connections_with_the_reason() {
    let (client, server) = endpoints();
    let identity = Identity::new();
    server.set_server_config(Some(identity.server(TransportConfig::default())));
    let connecting = client.connect_with(
        identity.client(TransportConfig::default()),
        server.local_addr(),
        NAME,
    );
    let accepted = within_limit(server.accept()).await.unwrap();
    let (first, _client_end) = tokio::join!(accepted, connecting.unwrap());
    let first = first.unwrap();

    let mut config = identity.server(TransportConfig::default());
    config.observer = Some(Arc::new(|_| Some(Box::new(PanickingObserver))));
    server.set_server_config(Some(config));
    let waiting = first.clone();
    let reading = tokio::spawn(async move { waiting.accept_bi().await.err() });
    let _second = client.connect_with(
        identity.client(TransportConfig::default()),
        server.local_addr(),
        NAME,
    );
    let panicked = ConnectionError::EndpointFailed(EndpointFailure::Panicked);
    assert_eq!(within_limit(first.closed()).await, panicked);
    assert_eq!(within_limit(reading).await.unwrap(), Some(panicked));
    let accepting = async { while server.accept().await.is_some() {} };
    within_limit(accepting).await;
    within_limit(server.wait_idle()).await;
}
