//! Memory is freed after a run.

use std::sync::{Arc, Weak};

use marline::TransportConfig;
use marline_sim::fabric::Plan;
use marline_sim::identity::{Identity, identity};

use crate::link::Pipe;
use crate::transfer::{ALPN, LIMIT, sim};

/// Drops a simulation in the middle of a download; returns the configuration of its connections.
fn abandoned() -> Weak<TransportConfig> {
    let mut plan = Plan::new();
    let nodes = [plan.host("client"), plan.host("server")];
    plan.join("link", Pipe::new(10, 20).duplex("link"), &nodes)
        .unwrap();
    let mut sim = sim(plan, 1);
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    // With grease, endpoints would have copies.
    let transport = Arc::new(TransportConfig {
        grease: false,
        ..TransportConfig::default()
    });
    let left = Arc::downgrade(&transport);
    let config = identity().server_config(ALPN, &transport).unwrap();
    let endpoint = server
        .endpoint(([0, 0, 0, 0], 443).into(), Some(config))
        .unwrap();
    let (from, to) = (client.at(0), server.at(443));
    server.run(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let mut send = connection.open_uni().await.unwrap();
        send.write_chunk(vec![5; 1_000_000].into()).await.ok();
        connection.closed().await;
    });
    let config = identity().client_config(ALPN, &transport).unwrap();
    drop(transport);
    let first = async move {
        let endpoint = client.endpoint(from, None).unwrap();
        let connecting = endpoint.connect_with(config, to, Identity::NAME).unwrap();
        let mut recv = connecting.await.unwrap().accept_uni().await.unwrap();
        recv.read_chunk(1000).await.unwrap();
    };
    sim.run(first, LIMIT).unwrap();
    left
}

#[test]
fn a_dropped_simulation_frees_its_connections() {
    assert_eq!(abandoned().strong_count(), 0);
}
