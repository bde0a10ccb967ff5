use super::*;
use crate::FilterLink;
use crate::conformance::{arrivals, check_link};

/// Sends packets of 1000 bytes, `gap` nanoseconds apart; returns the number that passed.
fn passed(policer: &mut Policer, from: u64, packets: u64, gap: u64) -> u64 {
    let times = (0..packets).map(|index| Time::from_nanos(from + index * gap));
    times
        .filter(|now| {
            let packet = &mut Packet::new(1000, ());
            policer.inspect(*now, packet).is_none()
        })
        .count() as u64
}

#[test]
fn a_policer_passes_its_burst_and_then_its_rate() {
    // 8 Mb/s are one packet per millisecond.
    let policer = &mut Policer::new(8_000_000, 10_000);
    assert_eq!(passed(policer, 0, 100, 0), 10);
    // At twice the rate, half of them pass.
    assert_eq!(passed(policer, 0, 2000, 500_000), 999);
    // At the rate, all pass.
    assert_eq!(passed(policer, 1_000_000_000, 1000, 1_000_000), 1000);
}

#[test]
fn a_policer_saves_no_more_than_its_burst() {
    let policer = &mut Policer::new(8_000_000, 10_000);
    assert_eq!(passed(policer, 0, 10, 0), 10);
    assert_eq!(passed(policer, 3_600_000_000_000, 100, 0), 10);
}

#[test]
fn a_packet_larger_than_the_burst_never_passes() {
    let policer = &mut Policer::new(8_000_000, 999);
    assert_eq!(passed(policer, 0, 10, 1_000_000_000), 0);
}

#[test]
fn what_exceeds_is_dropped_by_the_policer() {
    let packet = &mut Packet::new(1000, ());
    let dropped = Policer::new(1, 0).inspect(Time::ZERO, packet);
    assert_eq!(dropped, Some(DropReason::Policed));
}

#[test]
fn a_policer_satisfies_the_contract() {
    let link = || Box::new(FilterLink::new(Policer::new(2_000_000, 5_000))) as Box<_>;
    for seed in 0..4 {
        check_link(link, &arrivals(seed, 300)).unwrap();
    }
}
