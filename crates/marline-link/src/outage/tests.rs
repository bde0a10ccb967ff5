use std::time::Duration;

use super::{Outages, Period, Schedule, Suspensions};
use crate::{DropReason, FilterLink, Link, Packet, Seed, Time};

fn millis(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

#[test]
fn packets_during_an_outage_are_dropped() {
    let period = |from, to| Period {
        from: millis(from),
        to: millis(to),
    };
    let mut link = FilterLink::new(Outages::new(vec![period(70, 80), period(20, 30)]));
    let mut dropped = Vec::new();
    for at in (0..100).step_by(10) {
        link.push(millis(at), Packet::new(100, at));
    }
    while let Some(exit) = link.pop(Time::MAX) {
        if let Some(reason) = exit.dropped {
            assert_eq!(reason, DropReason::LinkDown);
            dropped.push(exit.packet.body);
        }
    }
    assert_eq!(dropped, [20, 70]);
}

#[test]
fn packets_during_a_pause_leave_at_its_end() {
    let schedule = Schedule {
        every: Duration::from_secs(1),
        shortest: Duration::from_millis(100),
        longest: Duration::from_millis(250),
    };
    let mut link = Suspensions::new(schedule, Seed::new(1));
    for at in 0..10_000 {
        link.push(millis(at), Packet::new(100, at));
    }
    let mut longest = [0; 10];
    while let Some(exit) = link.pop(Time::MAX) {
        let came = exit.packet.body;
        let waited = exit.at.since(millis(came)).as_millis() as u64;
        let pause = &mut longest[came as usize / 1000];
        *pause = waited.max(*pause);
    }
    assert_eq!(longest[0], 0);
    assert!(
        longest[1..].iter().all(|pause| (99..=250).contains(pause)),
        "{longest:?}"
    );
    assert!(longest[1..].windows(2).any(|pair| pair[0] != pair[1]));
}
