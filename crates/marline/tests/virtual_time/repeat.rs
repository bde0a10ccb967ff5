//! Deterministic runs: a connection from its start to its end, twice.

use std::time::Duration;

use marline::{Instant, Runtime, TransportConfig};
use marline_sim::identity::Identity;

use crate::setup::{DELAY, client_config, run, server_config};

const LEN: usize = 3_000_000;

/// Times of one run.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    /// All bytes had arrived.
    arrived: Instant,
    /// Neither endpoint had state of the connection left.
    idle: Instant,
}

/// Sends `LEN` bytes from the server to the client.
fn transfer() -> Times {
    run(async |network| {
        let server = network.server_endpoint(server_config(TransportConfig::default()));
        let client = network.client_endpoint();
        client.set_default_client_config(client_config(TransportConfig::default()));
        let accepting = server.clone();
        network.server.run(async move {
            let connection = accepting.accept().await.unwrap().await.unwrap();
            let mut send = connection.open_uni().await.unwrap();
            send.write_chunk(vec![5; LEN].into()).await.unwrap();
            send.finish().unwrap();
            // The client may close before it acknowledges the end.
            send.stopped().await.ok();
            connection.closed().await;
        });
        let connecting = client.connect(server.local_addr(), Identity::NAME);
        let connection = connecting.unwrap().await.unwrap();
        let mut recv = connection.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(LEN).await.unwrap().len(), LEN);
        let arrived = network.client.now();
        connection.close(0, b"");
        client.wait_idle().await;
        server.wait_idle().await;
        Times {
            arrived,
            idle: network.client.now(),
        }
    })
}

#[test]
fn equal_runs_become_idle_at_the_same_nanosecond() {
    let first = transfer();
    let took = first.arrived - Instant::EPOCH;
    assert!(took > 6 * DELAY, "below three round trips: {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(first.idle > first.arrived);
    assert_eq!(transfer(), first);
}
