//! Links that share a medium.

use marline_link::{Carried, Station};

use super::*;

/// A medium that carries one packet at a time, for 10 ns.
struct Air {
    stations: usize,
    free: u64,
    exits: VecDeque<Carried<Letter>>,
}

impl Air {
    fn of(stations: usize) -> Box<dyn Medium<Letter>> {
        Box::new(Self {
            stations,
            free: 0,
            exits: VecDeque::new(),
        })
    }
}

impl Medium<Letter> for Air {
    fn stations(&self) -> usize {
        self.stations
    }

    fn push(&mut self, now: Time, from: Station, to: Station, packet: Packet<Letter>) {
        self.free = self.free.max(now.as_nanos()) + 10;
        let exit = Exit::arrived(Time::from_nanos(self.free), packet);
        self.exits.push_back(Carried { from, to, exit });
    }

    fn pop(&mut self, now: Time) -> Option<Carried<Letter>> {
        let due = self.next_event().is_some_and(|at| at <= now);
        due.then(|| self.exits.pop_front()).flatten()
    }

    fn next_event(&self) -> Option<Time> {
        self.exits.front().map(|carried| carried.exit.at)
    }

    fn queued_bytes(&self, from: Station) -> u64 {
        let queued = self.exits.iter().filter(|carried| carried.from == from);
        queued
            .map(|carried| u64::from(carried.exit.packet.size))
            .sum()
    }
}

fn link(name: &str, ends: [Node; 2]) -> SharedLink {
    SharedLink {
        name: name.to_owned(),
        ends,
    }
}

#[test]
fn links_of_one_medium_delay_each_others_packets() {
    let mut plan = Plan::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| plan.host(name));
    let hub = plan.router("hub");
    let links = vec![
        link("x", [a, hub]),
        link("y", [hub, b]),
        link("z", [c, hub]),
    ];
    plan.join_shared(Air::of(4), &[hub, a, b, c], links)
        .unwrap();
    let mut fabric = plan.build().unwrap();
    let [ip_a, ip_b, ip_c] = [a, b, c].map(|node| fabric.addresses(node)[0]);
    assert_eq!(
        [ip_a, ip_b, ip_c].map(|ip| ip.to_string()),
        ["10.1.0.1", "10.2.0.2", "10.3.0.1"]
    );

    for (number, (from, ip)) in (0..).zip([(a, ip_a), (c, ip_c)]) {
        fabric.send(Time::ZERO, from, Packet::new(100, Letter(ip, ip_b, number)));
    }
    let [x, y, z] = ["x", "y", "z"].map(|name| fabric.find_medium(name).unwrap());
    assert_eq!(fabric.queued_bytes(z, c), Some(100));
    let arrivals: Vec<_> = drain(&mut fabric)
        .iter()
        .map(|event| match event {
            Event::Arrived { at, node, packet } => (at.as_nanos(), *node, packet.body.2),
            Event::Dropped { .. } => panic!("{event:?}"),
        })
        .collect();
    // Four transmissions, one after another: each packet crosses the hub.
    assert_eq!(arrivals, [(30, b, 0), (40, b, 1)]);
    let sent = |medium, node| {
        fabric
            .traffic(medium, node)
            .map(|traffic| traffic.arrived_packets)
    };
    assert_eq!(
        [sent(x, a), sent(z, c), sent(y, hub)],
        [Some(1), Some(1), Some(2)]
    );
    assert_eq!(sent(x, b), None);
}

#[test]
fn stations_of_one_medium_are_neighbors_only_by_a_link() {
    let mut plan = Plan::new();
    let [a, b] = ["a", "b"].map(|name| plan.host(name));
    let [near, far, wires] = ["near", "far", "wires"].map(|name| plan.router(name));
    let links = vec![link("a to near", [a, near]), link("b to far", [b, far])];
    plan.join_shared(Air::of(4), &[a, near, b, far], links)
        .unwrap();
    for (router, delay) in [(near, 1000), (far, 2000)] {
        let name = format!("wire {delay}");
        plan.join(name, both(&Wire::delay(delay)), &[router, wires])
            .unwrap();
    }
    let mut fabric = plan.build().unwrap();
    let [ip_a, ip_b] = [a, b].map(|node| fabric.addresses(node)[0]);
    let arrival = post(&mut fabric, a, Letter(ip_a, ip_b, 0), 0);
    assert_eq!(arrival, Some(Arrival { node: b, at: 3020 }));
}

#[test]
fn invalid_links_of_one_medium_are_rejected() {
    let build = |stations: usize, links: &dyn Fn([Node; 3]) -> Vec<SharedLink>| {
        let mut plan = Plan::new();
        let nodes = ["a", "b", "c"].map(|name| plan.host(name));
        let joined = plan.join_shared(Air::of(stations), &nodes[..2], links(nodes));
        joined.unwrap_err().to_string()
    };
    assert_eq!(
        build(3, &|[a, b, _]| vec![link("x", [a, b])]),
        "\"x\" joins 3 nodes, not 2"
    );
    assert_eq!(
        build(2, &|[a, _, c]| vec![link("x", [a, c])]),
        "\"x\" does not join node 2"
    );
    assert_eq!(
        build(2, &|[a, b, _]| vec![link("x", [a, b]), link("y", [b, a])]),
        "\"x\" and \"y\" share a medium and join the same nodes"
    );
    assert_eq!(
        build(2, &|[a, _, _]| vec![link("x", [a, a])]),
        "\"x\" joins \"a\" with itself"
    );
}
