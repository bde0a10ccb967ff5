//! What tests of rates, traces and radios share.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use crate::{Ecn, Exit, Link, Packet, Time};

/// The moment `nanos` nanoseconds after the epoch.
pub(crate) const fn ns(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// The moment `millis` milliseconds after the epoch.
pub(crate) const fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Packets with their arrivals; `body` is their index.
pub(crate) type Arrivals = Vec<(Time, Packet<usize>)>;

/// Up to 60 packets of four flows, some at the same moment, within a few times `gap`.
pub(crate) fn arrivals(largest: u32, gap: Duration) -> impl Strategy<Value = Arrivals> {
    let gap = u64::try_from(gap.as_nanos()).unwrap();
    let packet = (
        prop_oneof![Just(0), 0..gap],
        1..=largest,
        0..4u64,
        any::<bool>(),
    );
    proptest::collection::vec(packet, 0..60).prop_map(|packets| {
        let mut now = 0;
        let arrival = |(body, (gap, size, flow, ecn))| {
            now += gap;
            let mut packet = Packet::new(size, body);
            packet.flow = flow;
            packet.ecn = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
            (Time::from_nanos(now), packet)
        };
        packets.into_iter().enumerate().map(arrival).collect()
    })
}

/// Runs `link` until nothing is left to do, or until `end`; polls it whenever it asks for that.
pub(crate) fn run(
    link: &mut impl Link<usize>,
    arrivals: &[(Time, Packet<usize>)],
    end: Time,
) -> Vec<Exit<usize>> {
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
        while let Some(exit) = link.pop(now) {
            assert!(exit.at <= now, "{exit:?} at {now:?}");
            exits.push(exit);
        }
    }
}

/// Runs `link` without a look at it between arrivals, nor before `end`.
pub(crate) fn run_late(
    link: &mut impl Link<usize>,
    arrivals: &[(Time, Packet<usize>)],
    end: Time,
) -> Vec<Exit<usize>> {
    for (at, packet) in arrivals {
        link.push(*at, *packet);
    }
    std::iter::from_fn(|| link.pop(end)).collect()
}

/// What every link owes: exits in order, each packet at most once, none before it came, flows in
/// order, nothing lost without a word, and no difference when the caller is late.
pub(crate) fn honours_contract<L: Link<usize>>(
    make: impl Fn() -> L,
    arrivals: &[(Time, Packet<usize>)],
) {
    let end = arrivals.last().map_or(Time::ZERO, |(at, _)| *at) + Duration::from_secs(3600);
    let exits = run(&mut make(), arrivals, end);
    assert_eq!(exits, run_late(&mut make(), arrivals, end));
    assert!(exits.is_sorted_by_key(|exit| exit.at));
    let mut seen = vec![false; arrivals.len()];
    let mut last = [None; 4];
    for exit in &exits {
        let index = exit.packet.body;
        let (at, packet) = &arrivals[index];
        assert!(!std::mem::replace(&mut seen[index], true));
        assert!(exit.at >= *at);
        assert_eq!(exit.packet.size, packet.size);
        if exit.dropped.is_none() {
            let flow = usize::try_from(packet.flow).unwrap();
            assert!(last[flow].replace(index) < Some(index));
        }
    }
    assert!(seen.iter().all(|seen| *seen), "a packet stays inside");
}
