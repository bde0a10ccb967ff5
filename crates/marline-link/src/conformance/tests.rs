use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Arrival, arrivals, check_link, check_medium};
use crate::jitter::Distribution;
use crate::loss::{Bernoulli, GilbertElliott, Loss, Timed};
use crate::{
    Chain, Corrupt, Delay, Duplex, Duplicate, Exit, FilterLink, Jitter, JitterConfig, Link, Mtu,
    Outages, Overtaking, Packet, Period, Schedule, Seed, Suspensions, Time,
};

const SEED: Seed = Seed::new(7);

fn jitter(law: Distribution, reorder: bool) -> Jitter<u64> {
    let config = JitterConfig {
        reorder,
        correlation: Duration::from_millis(5),
        batch: Duration::from_millis(1),
        ..JitterConfig::new(Duration::from_millis(3), Duration::from_millis(2), law)
    };
    Jitter::new(config, SEED)
}

/// One link of each kind.
fn every_link() -> Vec<(&'static str, Box<dyn Link<u64>>)> {
    let millis = Duration::from_millis;
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let schedule = Schedule {
        every: millis(40),
        shortest: millis(5),
        longest: millis(20),
    };
    vec![
        ("delay", Box::new(Delay::new(millis(7)))),
        (
            "overtaking",
            Box::new(Overtaking::new(millis(7), 0.3, 0.5, SEED)),
        ),
        (
            "loss",
            Box::new(FilterLink::new(Loss(Bernoulli::new(0.3, SEED)))),
        ),
        (
            "bursts",
            Box::new(FilterLink::new(Loss(GilbertElliott::of_bursts(
                0.2, 3.0, SEED,
            )))),
        ),
        (
            "fading",
            Box::new(FilterLink::new(Loss(Timed::of_bursts(
                0.2,
                millis(3),
                SEED,
            )))),
        ),
        (
            "corrupt",
            Box::new(FilterLink::new(Corrupt::new(0.2, SEED))),
        ),
        ("duplicate", Box::new(Duplicate::new(0.2, SEED))),
        ("mtu", Box::new(FilterLink::new(Mtu { bytes: 1000 }))),
        (
            "outages",
            Box::new(FilterLink::new(Outages::new(vec![Period {
                from: at(3),
                to: at(9),
            }]))),
        ),
        ("suspensions", Box::new(Suspensions::new(schedule, SEED))),
        ("jitter", Box::new(jitter(Distribution::Normal, false))),
        ("reordering", Box::new(jitter(Distribution::Pareto, true))),
        ("chain", Box::new(Chain::new(Vec::new()))),
    ]
}

fn some_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0), 0..2_000_000_u64, 0..60_000_000_u64];
    let arrival = (gap, 40..=1500_u32, 0..4_u64).prop_map(|(gap, size, flow)| Arrival {
        gap: Duration::from_nanos(gap),
        size,
        flow,
    });
    vec(arrival, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_link_satisfies_the_contract(arrivals in some_arrivals()) {
        for (index, (name, _)) in every_link().iter().enumerate() {
            let checked = check_link(|| every_link().swap_remove(index).1, &arrivals);
            prop_assert_eq!(checked.map_err(|error| format!("{name}: {error}")), Ok(()));
        }
    }
}

#[test]
fn a_duplex_satisfies_the_medium_contract() {
    let duplex = || {
        let delay = Box::new(Delay::new(Duration::from_millis(3)));
        Box::new(Duplex::new(
            Box::new(jitter(Distribution::Normal, true)),
            delay,
        )) as Box<_>
    };
    check_medium(duplex, &arrivals(3, 500)).unwrap();
}

/// A link that violates one rule of the contract.
struct Broken {
    rule: Rule,
    held: Vec<(Time, Packet<u64>)>,
    polls: u32,
}

#[derive(Clone, Copy)]
enum Rule {
    Conservation,
    LatePolling,
    Past,
    End,
    BeforeArrival,
}

impl Link<u64> for Broken {
    fn push(&mut self, now: Time, packet: Packet<u64>) {
        self.held.push((now, packet));
    }

    fn pop(&mut self, now: Time) -> Option<Exit<u64>> {
        self.polls += 1;
        let (came, packet) = self.held.pop()?;
        match self.rule {
            Rule::Conservation => None,
            Rule::LatePolling => Some(Exit::arrived(now, packet)),
            Rule::BeforeArrival => Some(Exit::arrived(came - Duration::from_nanos(1), packet)),
            Rule::Past | Rule::End => Some(Exit::arrived(came, packet)),
        }
    }

    fn next_event(&self) -> Option<Time> {
        match self.rule {
            Rule::Past => Some(Time::ZERO),
            Rule::End => Some(Time::from_nanos(u64::MAX / 2 + u64::from(self.polls))),
            _ => self.held.last().map(|(at, _)| *at),
        }
    }
}

#[test]
fn every_violated_rule_is_reported() {
    for (rule, words) in [
        (Rule::Conservation, "never left"),
        (Rule::LatePolling, "polled only"),
        (Rule::Past, "an event is due"),
        (Rule::End, "do not end"),
        (Rule::BeforeArrival, "left before it arrived"),
    ] {
        let link = || {
            Box::new(Broken {
                rule,
                held: Vec::new(),
                polls: 0,
            }) as Box<_>
        };
        let error = check_link(link, &arrivals(1, 20)).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}
