use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::testing::{arrivals, ms, run, satisfies_contract};
use crate::{Ecn, Rate};

const CONFIG: CakeConfig = CakeConfig {
    rate: 12_000_000,
    limit: None,
    isolation: Isolation::Triple,
    ack_filter: false,
};

/// 12 Mb/s: 1500 bytes take 1 ms.
fn link(config: CakeConfig) -> Rate<u64> {
    Rate::new(config.rate, Box::new(Cake::new(config, Seed::new(1))))
}

fn packet(flow: u64, hosts: [u32; 2], size: u32) -> Packet<u64> {
    Packet {
        flow,
        hosts,
        ..Packet::new(size, 0)
    }
}

/// A packet each from these flows, every 400 us for two seconds.
fn load(flows: &[Packet<u64>]) -> Vec<(Time, Packet<u64>)> {
    let times = (0..5000).map(|index| Time::from_nanos(index * 400_000));
    times
        .flat_map(|at| flows.iter().map(move |packet| (at, *packet)))
        .collect()
}

/// The share of the bytes that arrived from the first packet's source host.
fn share_of_first_host(config: CakeConfig, flows: &[Packet<u64>]) -> f64 {
    let exits = run(&mut link(config), &load(flows), ms(2000));
    let mut bytes = BTreeMap::new();
    for exit in exits.iter().filter(|exit| exit.dropped.is_none()) {
        *bytes.entry(exit.packet.hosts[0]).or_insert(0.0) += f64::from(exit.packet.size);
    }
    bytes[&flows[0].hosts[0]] / bytes.values().sum::<f64>()
}

#[test]
fn hosts_have_equal_shares_however_many_flows_they_have() {
    let mut flows: Vec<_> = (1..5)
        .map(|flow| packet(flow.into(), [1, 10 + flow], 1500))
        .collect();
    flows.push(packet(5, [2, 20], 1500));
    for (isolation, expected) in [
        (Isolation::Triple, 0.5),
        (Isolation::SourceHosts, 0.5),
        (Isolation::DestinationHosts, 0.8),
        (Isolation::Flows, 0.8),
    ] {
        let config = CakeConfig {
            isolation,
            ..CONFIG
        };
        let share = share_of_first_host(config, &flows);
        assert!((share - expected).abs() < 0.03, "{isolation:?}: {share}");
    }
}

#[test]
fn flows_share_by_bytes() {
    let flows = [
        packet(1, [1, 9], 1500),
        packet(2, [2, 9], 500),
        packet(3, [2, 9], 500),
    ];
    let config = CakeConfig {
        isolation: Isolation::Flows,
        rate: 6_000_000,
        ..CONFIG
    };
    let share = share_of_first_host(config, &flows);
    assert!((share - 1.0 / 3.0).abs() < 0.02, "{share}");
}

#[test]
fn a_sparse_flow_waits_for_one_packet_at_most() {
    let mut arrivals = load(&[packet(1, [1, 9], 1500)]);
    let sent: Vec<_> = (1..20).map(|index| ms(100 * index)).collect();
    arrivals.extend(sent.iter().map(|at| (*at, packet(2, [2, 9], 100))));
    arrivals.sort_by_key(|(at, _)| *at);
    let exits = run(&mut link(CONFIG), &arrivals, ms(2000));
    let sparse = exits.iter().filter(|exit| exit.packet.flow == 2);
    let waits: Vec<_> = sparse
        .zip(&sent)
        .map(|(exit, at)| exit.at.since(*at))
        .collect();
    assert_eq!(waits.len(), 19);
    // A packet in transmission, one that was chosen in the same round, and its own transmission.
    assert!(
        waits.iter().all(|wait| *wait < Duration::from_micros(2100)),
        "{waits:?}"
    );
}

#[test]
fn capable_packets_are_marked_and_others_dropped() {
    let mut capable = packet(1, [1, 9], 1500);
    capable.ecn = Ecn::Ect0;
    // 10 % above the rate: a standing queue.
    let at = |index: u64| Time::from_nanos(index * 909_091);
    for (one, is_marked) in [(capable, true), (packet(1, [1, 9], 1500), false)] {
        let arrivals: Vec<_> = (0..5000).map(|index| (at(index), one)).collect();
        let exits = run(&mut link(CONFIG), &arrivals, ms(10_000));
        let marked = exits
            .iter()
            .filter(|exit| exit.packet.ecn == Ecn::Ce)
            .count();
        let dropped = exits.iter().filter(|exit| exit.dropped.is_some()).count();
        assert_eq!(
            (marked > 10, dropped > 10),
            (is_marked, !is_marked),
            "{marked} {dropped}"
        );
    }
}

#[test]
fn a_full_queue_drops_from_the_longest_and_raises_the_drop_probability() {
    let config = CakeConfig {
        limit: Some(30_000),
        ..CONFIG
    };
    let mut arrivals = vec![(Time::ZERO, packet(1, [1, 9], 1500)); 60];
    arrivals.extend([(Time::ZERO, packet(2, [2, 9], 1500)); 5]);
    let exits = run(&mut link(config), &arrivals, ms(500));
    let lost: Vec<_> = exits.iter().filter(|exit| exit.dropped.is_some()).collect();
    assert!(lost.len() >= 44);
    assert!(lost.iter().all(|exit| exit.packet.flow == 1));
}

#[test]
fn the_filter_keeps_the_newest_acknowledgment() {
    let config = CakeConfig {
        ack_filter: true,
        ..CONFIG
    };
    let mut arrivals = vec![(Time::ZERO, packet(7, [1, 9], 1500)); 2];
    let ack = |body| Packet {
        body,
        ..packet(1, [1, 9], 64)
    };
    arrivals.extend((1..6).map(|body| (Time::ZERO, ack(body))));
    arrivals.push((
        Time::ZERO,
        Packet {
            size: 200,
            ..ack(6)
        },
    ));
    arrivals.push((Time::ZERO, ack(7)));
    let exits = run(&mut link(config), &arrivals, ms(100));
    let passed = exits
        .iter()
        .filter(|exit| exit.dropped.is_none() && exit.packet.flow == 1);
    let passed: Vec<_> = passed.map(|exit| exit.packet.body).collect();
    assert_eq!(passed, [5, 6, 7]);
}

#[test]
fn flows_of_a_set_have_queues_of_their_own() {
    let mut cake: Cake<u64> = Cake::new(CONFIG, Seed::new(1));
    let exits = &mut VecDeque::new();
    // All would use the first queue of a table that is not associative.
    for flow in 1..=8 {
        cake.enqueue(Time::ZERO, packet(flow * 1024, [1, 9], 1500), exits);
    }
    assert!(cake.flows[..8].iter().all(|flow| flow.fifo.len() == 1));
    cake.enqueue(Time::ZERO, packet(9 * 1024, [1, 9], 1500), exits);
    assert_eq!(cake.flows[0].fifo.len(), 2);
}

#[test]
fn the_target_grows_at_low_rates() {
    let found = [1_000_000, 100_000_000].map(|rate| CobaltConfig::new(rate, MTU));
    let millis = |config: CobaltConfig| config.target().as_micros();
    // One and a half packets of 1514 bytes, or 5 ms.
    assert_eq!(found.map(millis), [18_168, 5000]);
}

proptest! {
    #[test]
    fn cake_satisfies_the_contract(
        arrivals in arrivals(1500, Duration::from_millis(3)),
        ack_filter: bool,
        limit in prop_oneof![Just(None), (5000..40_000_u64).prop_map(Some)],
    ) {
        let config = CakeConfig { ack_filter, limit, ..CONFIG };
        satisfies_contract(|| link(config), &arrivals)?;
    }
}
