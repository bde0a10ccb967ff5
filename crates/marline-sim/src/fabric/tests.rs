use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marline_link::{DropReason, Duplex, Exit, Link, Medium, Packet, Time};
use proptest::prelude::*;

use super::*;

mod shared;

/// The content of packets in these tests: source, destination and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter(IpAddr, IpAddr, u32);

impl Letter {
    pub(super) const fn new(from: IpAddr, to: IpAddr, number: u32) -> Self {
        Self(from, to, number)
    }
}

impl Routed for Letter {
    fn source(&self) -> IpAddr {
        self.0
    }

    fn destination(&self) -> IpAddr {
        self.1
    }
}

/// A medium that delays by some nanoseconds, serves one packet at a time, and drops every `lose_every`th.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    delay: u64,
    service: u64,
    lose_every: u64,
    pushed: u64,
    free: u64,
    exits: VecDeque<Exit<Letter>>,
}

impl Wire {
    fn delay(delay: u64) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }
}

impl Link<Letter> for Wire {
    fn push(&mut self, now: Time, packet: Packet<Letter>) {
        self.pushed += 1;
        let now = now.as_nanos();
        let served = match self.service {
            0 => now,
            service => self.free.max(now) + service,
        };
        self.free = served;
        let at = Time::from_nanos(served + self.delay);
        let lost = self.lose_every != 0 && self.pushed.is_multiple_of(self.lose_every);
        self.exits.push_back(if lost {
            Exit::dropped(at, packet, DropReason::Loss)
        } else {
            Exit::arrived(at, packet)
        });
    }

    fn pop(&mut self, now: Time) -> Option<Exit<Letter>> {
        let due = self.next_event().is_some_and(|at| at <= now);
        due.then(|| self.exits.pop_front()).flatten()
    }

    fn next_event(&self) -> Option<Time> {
        self.exits.front().map(|exit| exit.at)
    }
}

pub(super) fn wires(there: Wire, back: Wire) -> Box<dyn Medium<Letter>> {
    Box::new(Duplex::new(Box::new(there), Box::new(back)))
}

fn both(wire: &Wire) -> Box<dyn Medium<Letter>> {
    wires(wire.clone(), wire.clone())
}

const END: Time = Time::from_nanos(u64::MAX - 1);

fn drain(fabric: &mut Fabric<Letter>) -> Vec<Event<Letter>> {
    std::iter::from_fn(|| fabric.poll(END)).collect()
}

/// The place and time of a packet's arrival.
#[derive(Debug, PartialEq)]
struct Arrival {
    node: Node,
    /// Time in nanoseconds.
    at: u64,
}

/// Sends a packet, and returns its arrival.
fn post(fabric: &mut Fabric<Letter>, from: Node, letter: Letter, flow: u64) -> Option<Arrival> {
    let packet = Packet {
        flow,
        ..Packet::new(100, letter)
    };
    fabric.send(Time::ZERO, from, packet);
    match &drain(fabric)[..] {
        [Event::Arrived { at, node, .. }] => Some(Arrival {
            node: *node,
            at: at.as_nanos(),
        }),
        [Event::Dropped { .. }] => None,
        events => panic!("{events:?}"),
    }
}

#[test]
fn chains_forward_in_both_directions() {
    let mut plan = Plan::new();
    let [a, b] = [plan.host("a"), plan.host("b")];
    let [r, s] = [plan.router("r"), plan.router("s")];
    plan.join("left", both(&Wire::delay(1)), &[a, r]).unwrap();
    plan.join("middle", both(&Wire::delay(20)), &[s, r])
        .unwrap();
    plan.join("right", both(&Wire::delay(300)), &[s, b])
        .unwrap();
    let mut fabric = plan.build().unwrap();
    let [ip_a, ip_b] = [a, b].map(|node| fabric.addresses(node)[0]);
    assert_eq!(ip_a.to_string(), "10.1.0.1");
    assert_eq!(ip_b.to_string(), "10.3.0.2");
    assert!(fabric.addresses(r).is_empty());
    let there = post(&mut fabric, a, Letter(ip_a, ip_b, 0), 0);
    assert_eq!(there, Some(Arrival { node: b, at: 321 }));
    let back = post(&mut fabric, b, Letter(ip_b, ip_a, 0), 0);
    assert_eq!(back, Some(Arrival { node: a, at: 321 }));
    let middle = fabric.find_medium("middle").unwrap();
    assert_eq!(fabric.traffic(middle, s).unwrap().arrived_bytes, 100);
    assert_eq!(fabric.traffic(middle, a), None);
    // One to itself, and one to an unknown address.
    let own = post(&mut fabric, a, Letter(ip_a, ip_a, 0), 0);
    assert_eq!(own, Some(Arrival { node: a, at: 0 }));
    let nobody = post(&mut fabric, a, Letter(ip_a, [1; 4].into(), 0), 0);
    assert_eq!(nobody, None);
}

#[test]
fn the_source_address_chooses_the_interface() {
    let mut plan = Plan::new();
    let [a, b] = [plan.host("a"), plan.host("b")];
    let far = plan.router("far");
    plan.join("lte", both(&Wire::delay(1)), &[a, far]).unwrap();
    plan.join("core", both(&Wire::delay(10)), &[far, b])
        .unwrap();
    plan.join("wifi", both(&Wire::delay(5)), &[a, b]).unwrap();
    let mut fabric = plan.build().unwrap();
    let [lte, wifi] = fabric.addresses(a) else {
        unreachable!()
    };
    let [core, direct] = fabric.addresses(b) else {
        unreachable!()
    };
    let [lte, wifi, core, direct] = [*lte, *wifi, *core, *direct];
    let mut took = |from, node, to| post(&mut fabric, node, Letter(from, to, 0), 0);
    assert_eq!(took(lte, a, core), Some(Arrival { node: b, at: 11 }));
    assert_eq!(took(wifi, a, direct), Some(Arrival { node: b, at: 5 }));
    assert_eq!(took(core, b, lte), Some(Arrival { node: a, at: 11 }));
    // There is no route from one network to the other, but each has a route to the host.
    assert_eq!(took(lte, a, direct), Some(Arrival { node: b, at: 11 }));
    assert_eq!(took(wifi, a, core), Some(Arrival { node: b, at: 5 }));
    assert_eq!(fabric.source_for(a, direct), Some(wifi));
    assert_eq!(fabric.source_for(a, lte), Some(lte));
}

#[test]
fn flows_choose_among_equal_paths() {
    let mut plan = Plan::new();
    let [a, b] = [plan.host("a"), plan.host("b")];
    let [near, far] = [plan.router("near"), plan.router("far")];
    let access = plan
        .join("access", both(&Wire::default()), &[a, near])
        .unwrap();
    for (name, delay) in [("p", 1), ("q", 2), ("r", 3)] {
        plan.join(name, both(&Wire::delay(delay)), &[near, far])
            .unwrap();
    }
    plan.join("exit", both(&Wire::default()), &[far, b])
        .unwrap();
    plan.set_address(access, a, [192, 0, 2, 1].into()).unwrap();
    let mut fabric = plan.build().unwrap();
    let [ip_a, ip_b] = [a, b].map(|node| fabric.addresses(node)[0]);
    assert_eq!(ip_a.to_string(), "192.0.2.1");
    for flow in 0..9 {
        let there = post(&mut fabric, a, Letter(ip_a, ip_b, 0), flow);
        assert_eq!(
            there,
            Some(Arrival {
                node: b,
                at: flow % 3 + 1
            })
        );
    }
}

#[test]
fn invalid_plans_are_refused() {
    let wire = || both(&Wire::default());
    let error = |plan: Plan<Letter>| plan.build().err().map(|error| error.to_string());
    let mut plan = Plan::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| plan.host(name));
    assert_eq!(
        plan.join("x", wire(), &[a]),
        Err(PlanError::Stations {
            medium: "x".into(),
            stations: 2,
            nodes: 1
        })
    );
    let twice = plan.join("x", wire(), &[a, a]).unwrap_err();
    assert_eq!(twice.to_string(), "\"x\" joins \"a\" with itself");
    let unknown = plan.join("x", wire(), &[a, Node(9)]).unwrap_err();
    assert_eq!(unknown.to_string(), "\"x\" does not join node 9");
    let ab = plan.join("ab", wire(), &[a, b]).unwrap();
    assert!(plan.set_address(ab, c, [1; 4].into()).is_err());
    assert_eq!(error(plan).unwrap(), "host \"c\" has no link");

    let mut plan = Plan::new();
    let [a, relay, b] = ["a", "relay", "b"].map(|name| plan.host(name));
    plan.join("ar", wire(), &[a, relay]).unwrap();
    plan.join("rb", wire(), &[relay, b]).unwrap();
    assert_eq!(error(plan).unwrap(), "no route from \"a\" to \"b\"");

    let mut plan = Plan::new();
    let [a, relay, b] = [plan.host("a"), plan.router("relay"), plan.host("b")];
    let first = plan.join("ar", wire(), &[a, relay]).unwrap();
    let second = plan.join("rb", wire(), &[relay, b]).unwrap();
    plan.set_address(first, a, [1; 4].into()).unwrap();
    plan.set_address(second, b, [1; 4].into()).unwrap();
    assert_eq!(error(plan).unwrap(), "the address 1.1.1.1 is used twice");

    let mut plan = Plan::new();
    let nodes = [plan.host("a"), plan.router("a")];
    plan.join("x", wire(), &nodes).unwrap();
    assert_eq!(error(plan).unwrap(), "the name \"a\" is used twice");
}

#[test]
fn events_are_in_the_order_of_their_times_for_a_late_caller() {
    let build = || {
        let mut plan = Plan::new();
        let nodes = [plan.host("a"), plan.host("b"), plan.host("c")];
        let hub = plan.router("hub");
        for (node, delay) in nodes.into_iter().zip([7, 3, 5]) {
            let wire = Wire {
                service: 2,
                lose_every: 5,
                ..Wire::delay(delay)
            };
            plan.join(format!("to {}", node.index()), both(&wire), &[node, hub])
                .unwrap();
        }
        (plan.build().unwrap(), nodes)
    };
    let run = |polls: bool| {
        let (mut fabric, nodes) = build();
        let mut events = Vec::new();
        for step in 0..40u32 {
            let from = nodes[step as usize % 3];
            let to = nodes[(step as usize + 1) % 3];
            let [from_ip, to_ip] = [from, to].map(|node| fabric.addresses(node)[0]);
            let now = Time::ZERO + Duration::from_nanos(u64::from(step * 3));
            fabric.send(now, from, Packet::new(9, Letter(from_ip, to_ip, step)));
            while let Some(event) = polls.then(|| fabric.poll(now)).flatten() {
                events.push(event);
            }
        }
        events.extend(drain(&mut fabric));
        events
    };
    let events = run(true);
    assert_eq!(events, run(false));
    assert_eq!(events.len(), 40);
    assert!(events.is_sorted_by_key(Event::at));
}

proptest! {
    /// Every sent packet arrives or is lost exactly once, and the tap and the counters agree.
    #[test]
    fn every_packet_arrives_or_is_dropped_once(
        sends in prop::collection::vec((0..4usize, 0..4usize, 0..50u64, any::<u64>()), 1..200),
        lose_every in 0..7u64,
        service in 0..9u64,
    ) {
        let mut plan = Plan::new();
        let nodes = ["a", "b", "c", "d"].map(|name| plan.host(name));
        let routers = ["r", "s", "t"].map(|name| plan.router(name));
        let wire = Wire { service, lose_every, ..Wire::delay(10) };
        let mut joined = 0..;
        let mut join = |a, b| {
            let name = joined.next().map(|n: u32| n.to_string());
            plan.join(name.unwrap_or_default(), both(&wire), &[a, b]).unwrap();
        };
        let [a, b, c, d] = nodes;
        let [r, s, t] = routers;
        for (x, y) in [(a, r), (b, r), (c, t), (d, t), (a, s), (r, s), (s, t), (r, t), (t, s)] {
            join(x, y);
        }
        let mut fabric = plan.build().unwrap();
        let ends = Arc::new(Mutex::new((0u64, 0u64, 0u64)));
        let seen = Arc::clone(&ends);
        fabric.tap(Box::new(move |passage| {
            let mut ends = seen.lock().unwrap();
            match passage.verdict {
                Verdict::Entered => ends.0 += 1,
                Verdict::Left => ends.1 += 1,
                Verdict::Dropped(_) => ends.2 += 1,
            }
        }));
        let mut now = Time::ZERO;
        let mut events = Vec::new();
        for (number, &(from, to, gap, flow)) in (0..).zip(&sends) {
            now += Duration::from_nanos(gap);
            let [from, to] = [nodes[from], nodes[to]];
            let source = *fabric.addresses(from).last().unwrap();
            let letter = Letter(source, fabric.addresses(to)[0], number);
            let packet = Packet { flow, ..Packet::new(40, letter) };
            fabric.send(now, from, packet);
            events.extend(std::iter::from_fn(|| fabric.poll(now)));
        }
        events.extend(drain(&mut fabric));
        prop_assert_eq!(fabric.next_event(), None);
        prop_assert!(events.is_sorted_by_key(Event::at));
        let mut numbers: Vec<_> = events
            .iter()
            .map(|event| match event {
                Event::Arrived { node, packet, .. } => {
                    assert_eq!(fabric.host_of(packet.body.1), Some(*node));
                    packet.body.2
                }
                Event::Dropped { packet, .. } => packet.body.2,
            })
            .collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..sends.len() as u32).collect::<Vec<_>>());
        let (entered, left, dropped) = *ends.lock().unwrap();
        prop_assert_eq!(entered, left + dropped);
        let mut counted = (0, 0, 0);
        for medium in fabric.media() {
            for &node in fabric.members(medium) {
                let traffic = fabric.traffic(medium, node).unwrap();
                counted.0 += traffic.entered_packets;
                counted.1 += traffic.arrived_packets;
                counted.2 += traffic.dropped_packets();
            }
        }
        prop_assert_eq!(counted, (entered, left, dropped));
    }
}
