//! Helpers for tests of rates, queues, traces and radios.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proptest::prelude::*;

use crate::conformance::{Arrival, check_link};
use crate::{Ecn, Exit, Link, Packet, Time};

/// The time `nanos` nanoseconds after the epoch.
pub(crate) const fn ns(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// The time `millis` milliseconds after the epoch.
pub(crate) const fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Mean and standard deviation of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

/// The moments of `samples`.
pub(crate) fn moments(samples: &[f64]) -> Moments {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    Moments {
        mean,
        deviation: (squares / count).sqrt(),
    }
}

/// Up to 60 packets of four flows, some at the same time.
pub(crate) fn arrivals(largest: u32, gap: Duration) -> impl Strategy<Value = Vec<Arrival>> {
    let gap = u64::try_from(gap.as_nanos()).unwrap();
    let arrival = (prop_oneof![Just(0), 0..gap], 1..=largest, 0..4_u64);
    let arrival = arrival.prop_map(|(gap, size, flow)| Arrival {
        gap: Duration::from_nanos(gap),
        size,
        flow,
    });
    proptest::collection::vec(arrival, 0..60)
}

/// Runs `link` until it has no events left, or until `end`; polls it at every event.
pub(crate) fn run<B: Copy>(
    link: &mut impl Link<B>,
    arrivals: &[(Time, Packet<B>)],
    end: Time,
) -> Vec<Exit<B>> {
    let mut left = VecDeque::from(arrivals.to_vec());
    let mut exits = Vec::new();
    loop {
        let event = link.next_event().unwrap_or(Time::MAX);
        let arrival = left.front().map_or(Time::MAX, |(at, _)| *at);
        let now = event.min(arrival);
        if now > end || now == Time::MAX {
            return exits;
        }
        if arrival < event {
            link.push(now, left.pop_front().unwrap().1);
        }
        exits.extend(std::iter::from_fn(|| link.pop(now)));
    }
}

/// Checks the contract of links, and that each flow stays in order.
pub(crate) fn satisfies_contract<L: Link<u64> + 'static>(
    make: impl Fn() -> L,
    arrivals: &[Arrival],
) -> Result<(), TestCaseError> {
    let checked = check_link(|| Box::new(Capable(make())), arrivals);
    prop_assert_eq!(checked, Ok(()));
    let mut now = Time::ZERO;
    let packet = |(body, arrival): (u64, &Arrival)| {
        now += arrival.gap;
        let mut packet = Packet::new(arrival.size, body);
        packet.flow = arrival.flow;
        (now, packet)
    };
    let packets: Vec<_> = (0..).zip(arrivals).map(packet).collect();
    let mut last = BTreeMap::new();
    for exit in run(&mut Capable(make()), &packets, Time::MAX) {
        if exit.dropped.is_none() {
            let before = last.insert(exit.packet.flow, exit.packet.body);
            prop_assert!(
                before < Some(exit.packet.body),
                "{exit:?} overtook {before:?}"
            );
        }
    }
    Ok(())
}

/// Makes every other packet ECN-capable.
struct Capable<L>(L);

impl<L: Link<u64>> Link<u64> for Capable<L> {
    fn push(&mut self, now: Time, mut packet: Packet<u64>) {
        if packet.body.is_multiple_of(2) {
            packet.ecn = Ecn::Ect0;
        }
        self.0.push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<u64>> {
        self.0.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }

    fn queued_bytes(&self) -> u64 {
        self.0.queued_bytes()
    }
}
