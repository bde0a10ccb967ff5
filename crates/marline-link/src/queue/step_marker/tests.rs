use super::*;
use crate::Rate;
use crate::queue::{DropTail, Limit};
use crate::testing::{arrivals, ms, ns, run, satisfies_contract};
use proptest::prelude::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// A link of one packet of 1500 bytes per millisecond.
fn link<B: Send + 'static>(threshold: Duration) -> Rate<B> {
    let queue = Box::new(DropTail::new(Limit::Packets(100)));
    Rate::new(12_000_000, Box::new(StepMarker::new(threshold, queue)))
}

/// The marks of `packets` packets that arrive at the same time.
fn marks(threshold: Duration, packets: u64, ecn: Ecn) -> Vec<bool> {
    let mut packet = Packet::new(1500, 0);
    packet.ecn = ecn;
    let arrivals: Vec<_> = (0..packets).map(|_| (Time::ZERO, packet)).collect();
    let exits = run(&mut link(threshold), &arrivals, ms(1000));
    exits
        .iter()
        .map(|exit| exit.packet.ecn == Ecn::Ce && exit.packet.ecn != ecn)
        .collect()
}

#[test]
fn packets_are_marked_that_waited_longer_than_the_threshold() {
    // They wait 0, 1, 2, 3, 4 and 5 ms; the last leaves an empty queue.
    let expected = [false, false, false, true, true, false];
    assert_eq!(marks(2 * MILLISECOND, 6, Ecn::Ect1), expected);
}

#[test]
fn one_packet_behind_another_is_not_marked_on_a_slow_link() {
    assert_eq!(marks(MILLISECOND / 2, 2, Ecn::Ect1), [false, false]);
}

#[test]
fn only_ect1_is_marked() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        assert!(!marks(Duration::ZERO, 20, ecn).contains(&true), "{ecn:?}");
    }
}

#[test]
fn the_queue_below_still_drops() {
    let mut packet = Packet::new(1500, 0);
    packet.ecn = Ecn::Ect1;
    let arrivals: Vec<_> = (0..150).map(|_| (ns(0), packet)).collect();
    let exits = run(&mut link(MILLISECOND), &arrivals, ms(1000));
    let dropped = exits.iter().filter(|exit| exit.dropped.is_some());
    assert_eq!(dropped.count(), 49);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_step_marker_satisfies_the_contract(arrivals in arrivals(1500, 3 * MILLISECOND)) {
        satisfies_contract(|| link(MILLISECOND), &arrivals)?;
    }
}
