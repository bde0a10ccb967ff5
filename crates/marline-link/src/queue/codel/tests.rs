use proptest::prelude::*;

use super::*;
use crate::testing::{arrivals, ms, run, satisfies_contract};
use crate::{Link, Rate};

/// 12 Mb/s: 1500 bytes take 1 ms.
fn link(ecn: bool) -> Rate<usize> {
    let config = CodelConfig {
        ecn,
        ..CodelConfig::default()
    };
    let queue = Codel::new(config, Limit::Packets(1000));
    Rate::new(12_000_000, Box::new(queue))
}

/// `count` packets, one every `micros` microseconds.
fn flow(micros: u64, count: usize, ecn: Ecn) -> Vec<(Time, Packet<usize>)> {
    let packet = |(at, body)| {
        let mut packet = Packet::new(1500, body);
        packet.ecn = ecn;
        (Time::from_nanos(at * micros * 1000), packet)
    };
    (0..).zip(0..count).map(packet).collect()
}

fn drop_millis(exits: &[Exit<usize>]) -> Vec<u64> {
    let drops = exits.iter().filter(|exit| exit.dropped.is_some());
    drops.map(|exit| exit.at.as_nanos() / 1_000_000).collect()
}

#[test]
fn a_burst_that_drains_within_an_interval_is_not_dropped() {
    let burst: Vec<_> = (0..100)
        .map(|body| (ms(0), Packet::new(1500, body)))
        .collect();
    let exits = run(&mut link(false), &burst, ms(1000));
    assert_eq!(drop_millis(&exits), []);
}

#[test]
fn drops_of_a_standing_queue_follow_the_control_law() {
    // 10 % above the rate: the delay exceeds the target from about 60 ms on.
    let exits = run(&mut link(false), &flow(909, 1100, Ecn::NotEct), ms(2000));
    let drops = drop_millis(&exits);
    assert!((140..=180).contains(&drops[0]), "{drops:?}");
    // Each drop follows the previous one by interval / sqrt(count).
    let mut due = drops[0] as f64;
    for (count, drop) in (1..10).zip(&drops[1..]) {
        due += 100.0 / f64::from(count).sqrt();
        assert!((due - *drop as f64).abs() <= 2.0, "{drops:?}");
    }
    let reasons = exits.iter().filter_map(|exit| exit.dropped);
    assert!(reasons.eq(drops.iter().map(|_| DropReason::QueueManagement)));
}

#[test]
fn ecn_capable_packets_are_marked_instead_of_dropped() {
    let exits = run(&mut link(true), &flow(909, 1100, Ecn::Ect0), ms(2000));
    assert_eq!(drop_millis(&exits), []);
    let marked = exits
        .iter()
        .filter(|exit| exit.packet.ecn == Ecn::Ce)
        .count();
    assert!((20..200).contains(&marked), "{marked}");
    let exits = run(&mut link(true), &flow(909, 1100, Ecn::NotEct), ms(2000));
    assert!(!drop_millis(&exits).is_empty());
}

#[test]
fn an_empty_queue_leaves_the_dropping_state() {
    let mut link = link(false);
    let exits = run(&mut link, &flow(909, 1100, Ecn::NotEct), ms(4000));
    assert!(!drop_millis(&exits).is_empty());
    let again: Vec<_> = (0..50)
        .map(|body| (ms(5000), Packet::new(1500, body)))
        .collect();
    assert_eq!(drop_millis(&run(&mut link, &again, ms(9000))), []);
}

#[test]
fn packets_beyond_the_limit_are_dropped() {
    let queue = Codel::new(CodelConfig::default(), Limit::Packets(10));
    let mut link = Rate::new(12_000_000, Box::new(queue));
    let burst: Vec<_> = (0..20)
        .map(|body| (ms(0), Packet::new(1500, body)))
        .collect();
    let exits = run(&mut link, &burst, ms(1000));
    let full = exits
        .iter()
        .filter(|exit| exit.dropped == Some(DropReason::QueueFull));
    assert_eq!(full.count(), 9);
    assert_eq!(link.queued_bytes(), 0);
}

proptest! {
    #[test]
    fn codel_satisfies_the_link_contract(
        arrivals in arrivals(1500, Duration::from_millis(3)),
        ecn: bool,
    ) {
        let config = CodelConfig {
            target: Duration::from_millis(1),
            interval: Duration::from_millis(5),
            mtu: 100,
            ecn,
        };
        let make = || Rate::new(4_000_000, Box::new(Codel::new(config, Limit::Packets(20))));
        satisfies_contract(make, &arrivals)?;
    }
}
