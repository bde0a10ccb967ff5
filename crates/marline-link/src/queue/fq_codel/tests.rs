use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::testing::{arrivals, ms, run, satisfies_contract};
use crate::{Link, Rate};

/// 12 Mb/s: 1500 bytes take 1 ms.
fn link(config: FqCodelConfig) -> Rate<usize> {
    Rate::new(12_000_000, Box::new(FqCodel::new(config)))
}

/// `count` packets of a flow at one time.
fn burst(at: Time, flow: u64, size: u32, count: usize) -> Vec<(Time, Packet<usize>)> {
    let mut packet = Packet::new(size, 0);
    packet.flow = flow;
    vec![(at, packet); count]
}

#[test]
fn flows_share_the_rate_by_bytes() {
    let arrivals = [burst(ms(0), 1, 1500, 40), burst(ms(0), 2, 500, 120)].concat();
    let exits = run(&mut link(FqCodelConfig::default()), &arrivals, ms(40));
    let sent = |flow| {
        let of_flow = exits.iter().filter(|exit| exit.packet.flow == flow);
        of_flow.map(|exit| u64::from(exit.packet.size)).sum::<u64>()
    };
    assert!(sent(1).abs_diff(sent(2)) <= 3000, "{} {}", sent(1), sent(2));
}

#[test]
fn a_sparse_flow_has_priority() {
    let arrivals = [burst(ms(0), 1, 1500, 80), burst(ms(30), 2, 100, 1)].concat();
    let exits = run(&mut link(FqCodelConfig::default()), &arrivals, ms(90));
    let sparse = exits.iter().find(|exit| exit.packet.flow == 2).unwrap();
    // Only the packet in transmission precedes it.
    assert!(sparse.at <= ms(32), "{sparse:?}");
}

#[test]
fn the_largest_queue_drops_when_the_limit_is_exceeded() {
    let config = FqCodelConfig {
        packets: 20,
        ..FqCodelConfig::default()
    };
    let arrivals = [burst(ms(0), 1, 1500, 30), burst(ms(0), 2, 1500, 5)].concat();
    let exits = run(&mut link(config), &arrivals, ms(500));
    let lost: Vec<_> = exits.iter().filter(|exit| exit.dropped.is_some()).collect();
    assert_eq!(lost.len(), 14);
    assert!(lost.iter().all(|exit| exit.packet.flow == 1));
}

#[test]
fn codel_drops_only_packets_of_the_standing_queue() {
    let every = |micros: u64, flow: u64| {
        (0..1_000_000 / micros)
            .flat_map(move |i| burst(Time::from_nanos(i * micros * 1000), flow, 1500, 1))
    };
    let mut arrivals: Vec<_> = every(1000, 1).chain(every(10_000, 2)).collect();
    arrivals.sort_by_key(|(at, _)| *at);
    let exits = run(&mut link(FqCodelConfig::default()), &arrivals, ms(3000));
    let lost = |flow| {
        let of_flow = exits.iter().filter(|exit| exit.packet.flow == flow);
        of_flow.filter(|exit| exit.dropped.is_some()).count()
    };
    assert!(lost(1) > 5);
    assert_eq!(lost(2), 0);
}

#[test]
fn queued_bytes_counts_waiting_packets() {
    let mut link = link(FqCodelConfig::default());
    for (at, packet) in burst(ms(0), 7, 1000, 3) {
        link.push(at, packet);
    }
    assert_eq!(link.queued_bytes(), 2000);
    while link.pop(ms(100)).is_some() {}
    assert_eq!(link.queued_bytes(), 0);
}

proptest! {
    #[test]
    fn fq_codel_satisfies_the_link_contract(
        arrivals in arrivals(1500, Duration::from_millis(3)),
        queues in 0..4usize,
        quantum in 0..2000u32,
        packets in 0..20usize,
    ) {
        let codel = CodelConfig {
            target: Duration::from_millis(1),
            interval: Duration::from_millis(5),
            mtu: 100,
            ecn: true,
        };
        let config = FqCodelConfig { queues, quantum, packets, codel };
        satisfies_contract(|| Rate::new(4_000_000, Box::new(FqCodel::new(config))), &arrivals)?;
    }
}
