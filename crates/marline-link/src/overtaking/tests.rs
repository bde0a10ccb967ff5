use std::time::Duration;

use super::Overtaking;
use crate::testing::{ms, run};
use crate::{Packet, Seed, Time};

const DELAY: Duration = Duration::from_millis(5);
const PACKETS: u64 = 100_000;

/// The share of packets, one per millisecond, that arrive without delay. Each takes the full delay or none.
fn share_ahead(share: f64, correlation: f64) -> f64 {
    let mut line = Overtaking::new(DELAY, share, correlation, Seed::new(3));
    let arrivals: Vec<_> = (0..PACKETS)
        .map(|index| (ms(index), Packet::new(100, index)))
        .collect();
    let exits = run(&mut line, &arrivals, Time::MAX);
    assert_eq!(exits.len() as u64, PACKETS);
    let at_once = exits.iter().filter(|exit| {
        let took = exit.at.since(ms(exit.packet.body));
        assert!(took.is_zero() || took == DELAY, "{took:?}");
        took.is_zero()
    });
    at_once.count() as f64 / PACKETS as f64
}

#[test]
fn a_share_of_packets_overtakes_those_in_transit() {
    let share = share_ahead(0.25, 0.0);
    assert!((share - 0.25).abs() < 0.005, "{share}");
    assert_eq!(share_ahead(0.0, 0.0), 0.0);
}

#[test]
fn correlation_makes_overtaking_rarer_as_in_netem() {
    // The filtered value has a standard deviation of 1/6, so a quarter is 1.5 standard deviations below its mean.
    let share = share_ahead(0.25, 0.5);
    assert!((0.06..0.08).contains(&share), "{share}");
}

#[test]
fn packets_that_arrive_at_once_leave_before_earlier_ones() {
    let mut line = Overtaking::new(DELAY, 0.5, 0.0, Seed::new(1));
    let arrivals: Vec<_> = (0..20)
        .map(|index| (ms(index), Packet::new(100, index)))
        .collect();
    let exits = run(&mut line, &arrivals, Time::MAX);
    assert!(exits.is_sorted_by_key(|exit| exit.at));
    assert!(!exits.is_sorted_by_key(|exit| exit.packet.body));
}
