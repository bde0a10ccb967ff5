use proptest::prelude::*;

use super::*;
use crate::testing::{arrivals, ms, satisfies_contract};
use crate::{Link, Rate};

fn config() -> DualPi2Config {
    DualPi2Config::new(1_000_000)
}

fn packet(ecn: Ecn) -> Packet<usize> {
    let mut packet = Packet::new(1500, 0);
    packet.ecn = ecn;
    packet
}

/// A queue whose probability is `base` for the whole test.
fn at(base: f64) -> DualPi2<usize> {
    let mut queue = DualPi2::new(DualPi2Config {
        update: Duration::from_secs(3600),
        ..config()
    });
    queue.base = base;
    queue
}

/// The outcomes of packets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fates {
    as_it_was: usize,
    marked: usize,
    dropped: usize,
}

/// Sends `packets` one by one through a queue that is otherwise empty.
fn fates(mut queue: DualPi2<usize>, ecn: Ecn, packets: usize) -> Fates {
    let exits = &mut VecDeque::new();
    let mut fates = Fates::default();
    for _ in 0..packets {
        match queue.pass(Time::ZERO, packet(ecn), exits) {
            None => fates.dropped += 1,
            Some(packet) if packet.ecn == ecn => fates.as_it_was += 1,
            Some(_) => fates.marked += 1,
        }
    }
    assert_eq!(exits.len(), fates.dropped);
    fates
}

fn some_fates(as_it_was: usize, marked: usize, dropped: usize) -> Fates {
    Fates {
        as_it_was,
        marked,
        dropped,
    }
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let config = config();
    assert!((config.alpha - 0.15).abs() < 1e-12, "{config:?}");
    assert!((config.beta - 3.0).abs() < 1e-12, "{config:?}");
    assert_eq!(config.update, Duration::from_millis(15));
    assert!((config.overload() - 0.25).abs() < 1e-12);
}

#[test]
fn marks_of_the_short_queue_rise_along_a_ramp_or_a_step() {
    let micros = Duration::from_micros;
    for (delay, expected) in [(799, 0.0), (900, 0.25), (1000, 0.5), (1200, 1.0)] {
        assert!((config().ramp(micros(delay)) - expected).abs() < 1e-9);
    }
    let step = DualPi2Config {
        threshold: micros(1000),
        range: Duration::ZERO,
        ..config()
    };
    assert_eq!(
        [999, 1000].map(|delay| step.ramp(micros(delay))),
        [0.0, 1.0]
    );
}

#[test]
fn the_probability_follows_the_error_and_the_growth_of_the_delay() {
    let queue = &mut DualPi2::<()>::new(config());
    queue.update(Duration::from_millis(35));
    // 0.15 * 0.02 + 3 * 0.035
    assert!((queue.base - 0.108).abs() < 1e-9, "{}", queue.base);
    queue.update(Duration::from_millis(25));
    // 0.15 * 0.01 - 3 * 0.01
    assert!((queue.base - 0.0795).abs() < 1e-9, "{}", queue.base);
    queue.update(Duration::ZERO);
    assert!((queue.base - 0.00225).abs() < 1e-9, "{}", queue.base);
    queue.update(Duration::ZERO);
    assert!(queue.base.abs() < 1e-9);
}

#[test]
fn updates_see_the_oldest_packet_when_they_are_due() {
    let queue = &mut DualPi2::new(config());
    let exits = &mut VecDeque::new();
    queue.enqueue(ms(10), packet(Ecn::NotEct), exits);
    queue.enqueue(ms(20), packet(Ecn::NotEct), exits);
    queue.dequeue(ms(31), exits);
    // At 15 ms the oldest had waited for 5 ms, at 30 ms for 20.
    let expected = (0.15 * -0.01 + 3.0 * 0.005_f64).max(0.0) + 0.15 * 0.005 + 3.0 * 0.015;
    assert!((queue.base - expected).abs() < 1e-9, "{}", queue.base);
}

#[test]
fn an_idle_queue_forgets_at_the_pace_of_updates() {
    let gap = 100 * config().update;
    let queue = |base| {
        let mut queue = DualPi2::<usize>::new(config());
        queue.base = base;
        queue.advance(Time::ZERO + gap);
        queue
    };
    // Each takes 0.15 * 0.015 off.
    let left = 0.5 - 100.0 * 0.15 * 0.015;
    assert!((queue(0.5).base - left).abs() < 1e-9);
    assert!(queue(0.1).base.abs() < 1e-9);
    assert_eq!(queue(0.1).due, Time::ZERO + 101 * config().update);
}

#[test]
fn classic_packets_get_the_square_and_the_others_twice_the_probability() {
    assert_eq!(fates(at(0.1), Ecn::NotEct, 1001), some_fates(991, 0, 10));
    assert_eq!(fates(at(0.1), Ecn::Ect0, 1001), some_fates(991, 10, 0));
    assert_eq!(fates(at(0.1), Ecn::Ect1, 1001), some_fates(801, 200, 0));
    assert_eq!(fates(at(0.0), Ecn::Ect1, 1001), some_fates(1001, 0, 0));
}

#[test]
fn in_overload_marks_alone_are_not_enough() {
    assert_eq!(fates(at(0.5), Ecn::Ect0, 1001), some_fates(751, 0, 250));
    assert_eq!(fates(at(0.6), Ecn::Ect1, 1001), some_fates(0, 641, 360));
}

#[test]
fn a_packet_that_waits_alone_is_not_marked_for_its_delay() {
    let mut queue = at(0.0);
    let exits = &mut VecDeque::new();
    let mut taken = |packets: usize| {
        (0..packets).for_each(|_| queue.enqueue(Time::ZERO, packet(Ecn::Ect1), exits));
        let taken = (0..packets).map(|_| queue.dequeue(ms(5), exits).unwrap().ecn);
        taken.collect::<Vec<_>>()
    };
    assert_eq!(taken(1), [Ecn::Ect1]);
    // The first signal is due when the sum of probabilities exceeds 1.
    assert_eq!(taken(4), [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ect1]);
}

#[test]
fn the_classic_queue_gets_a_tenth_beside_the_other() {
    let mut queue = at(0.0);
    let exits = &mut VecDeque::new();
    for _ in 0..300 {
        queue.enqueue(Time::ZERO, packet(Ecn::Ect1), exits);
        queue.enqueue(Time::ZERO, packet(Ecn::Ect0), exits);
    }
    let first: Vec<_> = (0..200)
        .map(|_| queue.dequeue(Time::ZERO, exits).unwrap().ecn)
        .collect();
    let classic = first.iter().filter(|ecn| **ecn == Ecn::Ect0).count();
    assert_eq!(classic, 20);
    assert_eq!(first[..2], [Ecn::Ect1, Ecn::Ect0]);
}

#[test]
fn a_packet_that_others_marked_takes_the_short_queue() {
    let mut queue = at(0.0);
    let exits = &mut VecDeque::new();
    queue.enqueue(Time::ZERO, packet(Ecn::Ect0), exits);
    queue.enqueue(Time::ZERO, packet(Ecn::Ce), exits);
    assert_eq!(queue.dequeue(Time::ZERO, exits).unwrap().ecn, Ecn::Ce);
}

#[test]
fn both_queues_have_one_limit() {
    let mut queue = DualPi2::new(DualPi2Config::new(3000));
    let exits = &mut VecDeque::new();
    for ecn in [Ecn::Ect1, Ecn::NotEct, Ecn::Ect1] {
        queue.enqueue(Time::ZERO, packet(ecn), exits);
    }
    assert_eq!((queue.len(), queue.bytes(), exits.len()), (2, 3000, 1));
    assert_eq!(exits[0].dropped, Some(DropReason::QueueFull));
}

/// Makes every other flow a low-latency flow.
struct ByFlow<L>(L);

impl<L: Link<u64>> Link<u64> for ByFlow<L> {
    fn push(&mut self, now: Time, mut packet: Packet<u64>) {
        packet.ecn = match packet.flow % 2 {
            0 => Ecn::Ect1,
            _ => Ecn::NotEct,
        };
        self.0.push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<u64>> {
        self.0.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dualpi2_satisfies_the_contract(arrivals in arrivals(1500, Duration::from_millis(3))) {
        let link = || ByFlow(Rate::new(3_000_000, Box::new(DualPi2::new(DualPi2Config::new(20_000)))));
        satisfies_contract(link, &arrivals)?;
    }
}
