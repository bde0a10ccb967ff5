//! Networks of several links.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marline::{Instant, Runtime};
use marline_sim::Sim;
use marline_sim::fabric::Plan;

use crate::link::Pipe;
use crate::transfer::{LIMIT, connect, dial, download, serve, sim};

const LEN: usize = 400_000;

fn arrived(sim: &Sim, link: &str, from: &str) -> u64 {
    sim.fabric(|fabric| {
        let link = fabric.find_medium(link).unwrap();
        let from = fabric.find(from).unwrap();
        fabric.traffic(link, from).unwrap().arrived_bytes
    })
}

#[test]
fn each_interface_has_a_path_of_its_own() {
    let mut plan = Plan::new();
    let nodes = [plan.host("client"), plan.host("server")];
    for (name, delay) in [("wifi", 5), ("lte", 40)] {
        let pipe = Pipe::new(50, delay);
        plan.join(name, pipe.duplex(name), &nodes).unwrap();
    }
    let mut sim = sim(plan, 3);
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    serve(&server, LEN);
    let took = [0, 1].map(|network| {
        let [local, to] = [&client, &server].map(|host| host.addresses()[network]);
        let start = sim.now();
        let done = sim.run(
            async {
                let connection = connect(&client, (local, 0).into(), (to, 443).into()).await;
                assert_eq!(connection.remote_address(), (to, 443).into());
                download(&client, &connection, LEN).await
            },
            LIMIT,
        );
        done.unwrap() - start
    });
    assert!(took[1] > 3 * took[0], "{took:?}");
    for network in ["wifi", "lte"] {
        assert!(arrived(&sim, network, "server") > LEN as u64);
        assert!(arrived(&sim, network, "client") > 1000);
    }
}

#[test]
fn an_unbound_socket_sends_from_the_interface_with_the_shortest_route() {
    let mut plan = Plan::new();
    let [client, server] = [plan.host("client"), plan.host("server")];
    let router = plan.router("router");
    let pipe = || Pipe::new(50, 5).duplex("any");
    plan.join("detour", pipe(), &[client, router]).unwrap();
    plan.join("core", pipe(), &[router, server]).unwrap();
    plan.join("direct", pipe(), &[client, server]).unwrap();
    let mut sim = sim(plan, 3);
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    serve(&server, LEN);
    let to = (server.addresses()[1], 443).into();
    let done = sim.run(
        async {
            let any = ([0, 0, 0, 0], 0).into();
            let connection = connect(&client, any, to).await;
            download(&client, &connection, LEN).await
        },
        LIMIT,
    );
    assert!(done.is_ok());
    assert_eq!(arrived(&sim, "detour", "client"), 0);
    assert!(arrived(&sim, "direct", "server") > LEN as u64);
}

#[test]
fn a_chain_of_three_hops_adds_its_delays() {
    let mut plan = Plan::new();
    let [client, server] = [plan.host("client"), plan.host("server")];
    let [near, far] = [plan.router("near"), plan.router("far")];
    for (name, delay, ends) in [
        ("radio", 10, [client, near]),
        ("core", 20, [near, far]),
        ("access", 3, [far, server]),
    ] {
        let pipe = Pipe::new(100, delay);
        plan.join(name, pipe.duplex(name), &ends).unwrap();
    }
    let mut sim = sim(plan, 4);
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    serve(&server, LEN);
    let rtt = sim.run(
        async {
            let connection = connect(&client, client.at(0), server.at(443)).await;
            download(&client, &connection, LEN).await;
            connection.rtt()
        },
        LIMIT,
    );
    let rtt = rtt.unwrap();
    assert!(rtt > Duration::from_millis(66), "{rtt:?}");
    assert!(rtt < Duration::from_millis(110), "{rtt:?}");
}

/// Eight connections over two equal paths: each keeps to one, and both are used.
#[test]
fn flows_are_spread_over_equal_paths() {
    let mut plan = Plan::new();
    let [client, server] = [plan.host("client"), plan.host("server")];
    let [near, far] = [plan.router("near"), plan.router("far")];
    let pipe = Pipe::new(100, 2);
    plan.join("access", pipe.duplex("access"), &[client, near])
        .unwrap();
    for name in ["upper", "lower"] {
        plan.join(name, pipe.duplex(name), &[near, far]).unwrap();
    }
    plan.join("exit", pipe.duplex("exit"), &[far, server])
        .unwrap();
    let mut sim = sim(plan, 5);
    let paths = Arc::new(Mutex::new(BTreeMap::new()));
    let seen = Arc::clone(&paths);
    sim.fabric(|fabric| {
        let equal = ["upper", "lower"].map(|name| fabric.find_medium(name));
        fabric.tap(Box::new(move |passage| {
            if equal.contains(&passage.medium) {
                let flow = (
                    passage.from,
                    passage.packet.body.source,
                    passage.packet.body.destination,
                );
                let known = *seen.lock().unwrap().entry(flow).or_insert(passage.medium);
                assert_eq!(known, passage.medium);
            }
        }));
    });
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    serve(&server, LEN / 8);
    for _ in 0..8 {
        let done: Result<Instant, _> = sim.run(
            async {
                let connection = connect(&client, client.at(0), server.at(443)).await;
                download(&client, &connection, LEN / 8).await
            },
            LIMIT,
        );
        assert!(done.is_ok());
    }
    for path in ["upper", "lower"] {
        assert!(arrived(&sim, path, "far") > LEN as u64 / 8, "{path}");
    }
    // Eight flows in each direction.
    assert_eq!(paths.lock().unwrap().len(), 16);
}

/// A client migrates from one network to the other during a download.
#[test]
fn connections_survive_a_handover() {
    let mut plan = Plan::new();
    let [client, server] = [plan.host("client"), plan.host("server")];
    let router = plan.router("router");
    for (name, delay, ends) in [
        ("wifi", 5, [client, router]),
        ("lte", 25, [client, router]),
        ("core", 10, [router, server]),
    ] {
        plan.join(name, Pipe::new(5, delay).duplex(name), &ends)
            .unwrap();
    }
    let mut sim = sim(plan, 6);
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    serve(&server, LEN);
    let moving = client.clone();
    let done = sim.run(
        async {
            let (endpoint, connection) = dial(&client, client.at(0), server.at(443)).await;
            let lte = (client.addresses()[1], 0).into();
            moving.clone().run(async move {
                moving.sleep(Duration::from_millis(200)).await;
                let socket = moving.bind(lte).unwrap();
                endpoint.rebind_to(socket).unwrap();
                moving.sleep(LIMIT).await;
            });
            download(&client, &connection, LEN).await
        },
        LIMIT,
    );
    assert!(done.is_ok());
    for network in ["wifi", "lte"] {
        let share = arrived(&sim, network, "router") as f64 / LEN as f64;
        assert!((0.2..0.9).contains(&share), "{network}: {share}");
    }
}
