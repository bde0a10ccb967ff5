//! The waits for the end of connections before a program ends.

use marline::{Connection, ConnectionError, Endpoint, Runtime, TransportConfig};
use marline_sim::identity::Identity;

use crate::setup::{Network, client_config, run, server_config};

/// A connection, and both endpoints.
struct Ends {
    client: Endpoint,
    server: Endpoint,
    ours: Connection,
    theirs: Connection,
}

async fn connect(network: &Network) -> Ends {
    let server = network.server_endpoint(server_config(TransportConfig::default()));
    let client = network.client_endpoint();
    client.set_default_client_config(client_config(TransportConfig::default()));
    let connecting = client.connect(server.local_addr(), Identity::NAME);
    let ours = connecting.unwrap().await.unwrap();
    let theirs = server.accept().await.unwrap().await.unwrap();
    Ends {
        client,
        server,
        ours,
        theirs,
    }
}

#[test]
fn a_program_may_end_when_connection_close_is_sent() {
    run(async |network| {
        let ends = connect(network).await;
        let start = network.client.now();
        ends.client.close(7, b"done");
        ends.client.wait_close_sent().await;
        assert_eq!(network.client.now(), start, "without the closing period");
        assert_eq!(ends.client.open_connections(), 1, "it is still closing");
        let error = ends.theirs.closed().await;
        assert!(matches!(
            error,
            ConnectionError::PeerApplication { code: 7, .. }
        ));
        drop(ends.ours);
    });
}

#[test]
fn waiting_for_connection_close_ends_however_late_it_begins() {
    run(async |network| {
        let ends = connect(network).await;
        ends.client.close(7, b"done");
        ends.theirs.closed().await;
        ends.client.wait_close_sent().await;
        ends.client.wait_idle().await;
        ends.client.wait_close_sent().await;
        ends.server.wait_idle().await;
    });
}
