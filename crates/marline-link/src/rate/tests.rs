use std::time::Duration;

use proptest::prelude::*;

use super::{Rate, UNLIMITED};
use crate::queue::{DropTail, Limit};
use crate::testing::{arrivals, ms, ns, run, satisfies_contract};
use crate::{Chain, Delay, DropReason, Exit, Link, Packet, Time};

fn link(bits_per_second: u64, limit: Limit) -> Rate<u64> {
    Rate::new(bits_per_second, Box::new(DropTail::new(limit)))
}

#[test]
fn transmission_time_is_size_over_rate() {
    let mut link = link(12_000_000, Limit::Infinite);
    link.push(ms(5), Packet::new(1500, 0));
    link.push(ms(5), Packet::new(750, 1));
    assert_eq!(link.queued_bytes(), 750);
    assert_eq!(link.next_event(), Some(ms(6)));
    assert_eq!(link.pop(ns(5_999_999)), None);
    assert_eq!(
        link.pop(ms(6)),
        Some(Exit::arrived(ms(6), Packet::new(1500, 0)))
    );
    assert_eq!(link.queued_bytes(), 0);
    assert_eq!(link.next_event(), Some(ns(6_500_000)));
    assert_eq!(link.pop(ms(9)).unwrap().at, ns(6_500_000));
    assert_eq!(link.next_event(), None);
}

#[test]
fn rounding_to_nanoseconds_does_not_accumulate() {
    // 3 bytes at 7 bits per second: 24/7 s each.
    let arrivals: Vec<_> = (0..700).map(|i| (ns(1), Packet::new(3, i))).collect();
    let exits = run(&mut link(7, Limit::Infinite), &arrivals, Time::MAX);
    for (sent, exit) in (1..).zip(&exits) {
        let exact = (sent * 24_000_000_000_u64).div_ceil(7);
        assert_eq!(exit.at, ns(1 + exact));
    }
    assert_eq!(exits.len(), 700);
}

#[test]
fn the_packet_in_transmission_does_not_count_towards_the_limit() {
    for limit in [Limit::Packets(2), Limit::Bytes(3000)] {
        let mut link = link(1_000_000, limit);
        for i in 0..4 {
            link.push(ns(i), Packet::new(1500, i));
        }
        let lost = link.pop(ns(3)).unwrap();
        assert_eq!(lost.dropped, Some(DropReason::QueueFull));
        assert_eq!((lost.at, lost.packet.body), (ns(3), 3));
        assert_eq!(link.queued_bytes(), 3000);
    }
}

#[test]
fn a_limit_of_zero_still_transmits_one_packet() {
    let mut link = link(12_000_000, Limit::Packets(0));
    for (at, body) in [(0, 0), (1, 1), (2, 2)] {
        link.push(ms(at), Packet::new(1500, body));
        let exits: Vec<_> = std::iter::from_fn(|| link.pop(ms(at))).collect();
        assert!(exits.iter().all(|exit| exit.dropped.is_none()));
    }
    link.push(ns(2_500_000), Packet::new(1500, 3));
    assert!(link.pop(ns(2_500_000)).unwrap().dropped.is_some());
}

#[test]
fn drop_head_drops_the_oldest_packets() {
    let queue = DropTail::drop_head(Limit::Packets(2));
    let mut link = Rate::new(12_000_000, Box::new(queue));
    let burst: Vec<_> = (0..6).map(|i| (ms(0), Packet::new(1500, i))).collect();
    let exits = run(&mut link, &burst, Time::MAX);
    let of = |lost| -> Vec<_> {
        let chosen = exits.iter().filter(|exit| exit.dropped.is_some() == lost);
        chosen.map(|exit| exit.packet.body).collect()
    };
    assert_eq!(of(true), [1, 2, 3]);
    assert_eq!(of(false), [0, 4, 5]);
}

#[test]
fn an_unlimited_rate_takes_no_time() {
    let mut link = link(UNLIMITED, Limit::Packets(0));
    for body in 0..3 {
        link.push(ms(1), Packet::new(1500, body));
    }
    for body in 0..3 {
        assert_eq!(
            link.pop(ms(1)),
            Some(Exit::arrived(ms(1), Packet::new(1500, body)))
        );
    }
}

#[test]
fn rate_zero_transmits_nothing() {
    let mut link = link(0, Limit::Packets(1));
    link.push(ms(1), Packet::new(1500, 0));
    link.push(ms(1), Packet::new(1500, 1));
    assert_eq!(link.next_event(), None);
    assert_eq!(link.pop(Time::MAX), None);
    assert_eq!(link.queued_bytes(), 1500);
}

#[test]
fn a_time_limit_converts_to_bytes_at_the_rate() {
    let limit = Limit::time(Duration::from_millis(51), 7_000_000);
    assert_eq!(limit, Limit::Bytes(44_625));
}

/// Unlike here, netem counts packets in transit towards its queue limit, so longer delays lose more.
#[test]
fn drops_of_a_buffer_are_independent_of_the_delay() {
    // 1500 bytes take 120 us; bursts of 80 every 7.2 ms are one and a third times the rate.
    let arrivals: Vec<_> = (0..4000)
        .map(|i| (ns(i / 80 * 7_200_000), Packet::new(1500, i)))
        .collect();
    let delay = Duration::from_millis(188);
    let near = run(
        &mut link(100_000_000, Limit::Packets(50)),
        &arrivals,
        Time::MAX,
    );
    let stages: Vec<Box<dyn Link<u64>>> = vec![
        Box::new(link(100_000_000, Limit::Packets(50))),
        Box::new(Delay::new(delay)),
    ];
    let far = run(&mut Chain::new(stages), &arrivals, Time::MAX);
    let lost = |exits: &[Exit<u64>]| -> Vec<_> {
        let lost = exits.iter().filter(|exit| exit.dropped.is_some());
        lost.map(|exit| (exit.at, exit.packet.body)).collect()
    };
    let arrived = |exits: &[Exit<u64>], delay: Duration| -> Vec<_> {
        let arrived = exits.iter().filter(|exit| exit.dropped.is_none());
        arrived
            .map(|exit| (exit.at + delay, exit.packet.body))
            .collect()
    };
    assert!(lost(&near).len() > 1000);
    assert_eq!(lost(&near), lost(&far));
    assert_eq!(arrived(&near, delay), arrived(&far, Duration::ZERO));
}

proptest! {
    #[test]
    fn every_limit_satisfies_the_link_contract(
        arrivals in arrivals(1500, Duration::from_millis(3)),
        rate in prop_oneof![Just(UNLIMITED), 1_000_000..20_000_000_u64],
        limit in prop_oneof![
            Just(Limit::Infinite),
            (0..9000u64).prop_map(Limit::Bytes),
            (0..6usize).prop_map(Limit::Packets),
        ],
        head: bool,
    ) {
        satisfies_contract(
            || {
                let queue = if head { DropTail::drop_head(limit) } else { DropTail::new(limit) };
                Rate::new(rate, Box::new(queue))
            },
            &arrivals,
        )?;
    }
}
