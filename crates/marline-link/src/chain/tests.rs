use std::time::Duration;

use super::Chain;
use crate::jitter::Distribution;
use crate::loss::{Bernoulli, GilbertElliott, Loss};
use crate::{
    Delay, DropReason, Duplicate, Exit, FilterLink, Jitter, JitterConfig, Link, Mtu, Packet, Seed,
    Time, conformance,
};

fn stages() -> Vec<Box<dyn Link<u64>>> {
    let seed = Seed::new(1);
    let jitter = JitterConfig {
        reorder: true,
        ..JitterConfig::new(
            Duration::from_millis(9),
            Duration::from_millis(3),
            Distribution::Normal,
        )
    };
    vec![
        Box::new(FilterLink::new(Mtu { bytes: 1400 })),
        Box::new(Delay::new(Duration::from_millis(2))),
        Box::new(FilterLink::new(Loss(Bernoulli::new(0.1, seed.of("a"))))),
        Box::new(Jitter::new(jitter, seed)),
        Box::new(FilterLink::new(Loss(GilbertElliott::of_bursts(
            0.1, 3.0, seed,
        )))),
        Box::new(Duplicate::new(0.1, seed)),
        Box::new(Delay::new(Duration::ZERO)),
    ]
}

#[test]
fn a_chain_satisfies_the_link_contract() {
    for seed in 0..10 {
        let arrivals = conformance::arrivals(seed, 500);
        conformance::check_link(|| Box::new(Chain::new(stages())), &arrivals).unwrap();
    }
}

#[test]
fn exits_and_drops_of_all_stages_are_in_time_order() {
    let mut chain = Chain::new(stages());
    for index in 0..200 {
        let size = if index % 3 == 0 { 1500 } else { 1000 };
        chain.push(Time::from_nanos(index * 500_000), Packet::new(size, index));
    }
    let exits: Vec<_> = std::iter::from_fn(|| chain.pop(Time::MAX)).collect();
    assert!(exits.is_sorted_by_key(|exit| exit.at));
    for reason in [None, Some(DropReason::TooLarge), Some(DropReason::Loss)] {
        assert!(
            exits.iter().any(|exit| exit.dropped == reason),
            "{reason:?}"
        );
    }
}

#[test]
fn a_chain_without_stages_adds_no_delay() {
    let mut chain = Chain::new(Vec::new());
    let (now, packet) = (Time::from_nanos(5), Packet::new(100, ()));
    chain.push(now, packet);
    assert_eq!(chain.pop(now), Some(Exit::arrived(now, packet)));
    assert_eq!(chain.next_event(), None);
}
