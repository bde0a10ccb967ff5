//! Links that fail and addresses that are detached while a simulation runs.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use marline::Runtime;
use marline_link::DropReason;
use marline_sim::fabric::Verdict;
use marline_sim::{Host, Sim, SimBuilder};

use crate::support::{read, send, send_as};

const LIMIT: Duration = Duration::from_secs(60);

/// A client on two networks, and a server behind a router.
struct TwoNetworks {
    sim: Sim,
    client: Host,
    server: Host,
}

fn two_networks() -> TwoNetworks {
    let sim = SimBuilder::new(1)
        .router("router")
        .link("wifi", ["client", "router"], "rtt=20ms")
        .link("lte", ["client", "router"], "rtt=60ms")
        .link("backbone", ["router", "server"], "")
        .build()
        .unwrap();
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    TwoNetworks {
        sim,
        client,
        server,
    }
}

fn wait(sim: &mut Sim, host: &Host, millis: u64) {
    let time = Duration::from_millis(millis);
    sim.run(host.sleep(time), LIMIT).unwrap();
}

#[test]
fn a_cut_link_loses_packets_in_flight_until_it_is_restored() {
    let TwoNetworks {
        mut sim,
        client,
        server,
    } = two_networks();
    let wifi = sim.link("wifi").unwrap();
    let from = client.bind(client.at(0)).unwrap();
    let to = server.bind(server.at(9)).unwrap();
    let lost = |sim: &Sim| sim.statistics().packets_lost;
    send(&*from, server.at(9), b"in flight", None).unwrap();
    wait(&mut sim, &client, 5);
    wifi.cut();
    wait(&mut sim, &client, 20);
    send(&*from, server.at(9), b"into the cut", None).unwrap();
    wait(&mut sim, &client, 20);
    assert_eq!((read(&*to).len(), lost(&sim)), (0, 2));
    // Hosts are not notified of a cut.
    assert_eq!(client.interfaces().unwrap().len(), 2);
    wifi.restore();
    send(&*from, server.at(9), b"after it", None).unwrap();
    wait(&mut sim, &client, 20);
    assert_eq!((read(&*to).len(), lost(&sim)), (1, 2));
}

#[test]
fn a_filter_loses_the_packets_that_it_selects() {
    let TwoNetworks {
        mut sim,
        client,
        server,
    } = two_networks();
    let (reasons, seen) = std::sync::mpsc::channel();
    sim.fabric(|fabric| {
        fabric.tap(Box::new(move |passage| {
            if let Verdict::Dropped(reason) = passage.verdict {
                reasons.send((passage.at.as_nanos(), reason)).unwrap();
            }
        }));
    });
    let sender = client.node();
    let wifi = sim.link("wifi").unwrap();
    wifi.lose_if(move |from, packet| from == sender && packet.body.payload == b"lost");
    let from = client.bind(client.at(7)).unwrap();
    let to = server.bind(server.at(9)).unwrap();
    for payload in [&b"lost"[..], b"kept"] {
        send(&*from, server.at(9), payload, None).unwrap();
    }
    wait(&mut sim, &client, 20);
    send(&*to, client.at(7), b"lost", None).unwrap();
    wait(&mut sim, &client, 20);
    let payloads = |received: Vec<crate::support::Received>| {
        let payloads = received.into_iter().map(|one| one.payload);
        payloads.collect::<Vec<_>>()
    };
    assert_eq!(payloads(read(&*to)), [b"kept"]);
    assert_eq!(payloads(read(&*from)), [b"lost"]);
    // The packet is lost at the end of the link.
    let seen: Vec<_> = seen.try_iter().collect();
    assert_eq!(seen, [(10_000_000, DropReason::Loss)]);
    assert_eq!(wifi.arrived_bytes(&client), 32);
}

#[test]
fn a_detached_address_neither_sends_nor_receives() {
    let TwoNetworks {
        mut sim,
        client,
        server,
    } = two_networks();
    let &[wifi, lte] = client.addresses() else {
        panic!("two interfaces");
    };
    let any = SocketAddr::from(([0, 0, 0, 0], 7));
    let from = client.bind(any).unwrap();
    let to = server.bind(server.at(9)).unwrap();
    let from_wifi = SocketAddr::from((wifi, 7));
    client.detach(wifi);

    let names = || {
        let list = client.interfaces().unwrap().into_iter();
        list.map(|one| (one.name, one.address)).collect::<Vec<_>>()
    };
    assert_eq!(names(), [("lte".to_owned(), lte.into())]);
    let refused = client.bind((wifi, 8).into()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AddrNotAvailable);
    let refused = send_as(&*from, from_wifi, server.at(9), b"refused", None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AddrNotAvailable);
    // An unbound socket uses the remaining address.
    send(&*from, server.at(9), b"over lte", None).unwrap();
    send(&*to, from_wifi, b"to a detached address", None).unwrap();
    wait(&mut sim, &client, 40);
    let [received] = &read(&*to)[..] else {
        panic!("one datagram");
    };
    assert_eq!(received.meta.remote, (lte, 7).into());
    assert_eq!(sim.statistics().packets_lost, 1);
    assert!(read(&*from).is_empty());

    client.attach(wifi);
    assert_eq!(names().len(), 2);
    send_as(&*from, from_wifi, server.at(9), b"sent", None).unwrap();
    wait(&mut sim, &client, 20);
    let [received] = &read(&*to)[..] else {
        panic!("one datagram");
    };
    assert_eq!(received.meta.remote, from_wifi);
}
