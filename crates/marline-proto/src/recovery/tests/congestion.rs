//! Reactions of the controller and their reports (section 7).

use super::*;
use crate::congestion::slow_start::{SlowStartDecision, SlowStartExit, SlowStartSample};
use crate::tuple::EcnValidationState;

fn reactions(bench: &Bench) -> Vec<Reaction> {
    let reactions = bench
        .seen
        .events
        .iter()
        .filter_map(CongestionEvent::reaction);
    reactions.copied().collect()
}

/// Section 7.3.2.
#[test]
fn losses_of_one_epoch_reduce_the_window_once() {
    let mut bench = Bench::with_rtt(50);
    let before = bench.window();
    bench.send_many(at(100), 8);
    bench.ack(at(150), 4..=4);
    let after = bench.window();
    assert_eq!(after, before / 2);
    bench.ack(at(151), 7..=7);
    bench.ack(at(152), 8..=8);
    assert_eq!(bench.window(), after);
    let expected = Reaction {
        persistent: false,
        before,
        after,
    };
    assert_eq!(reactions(&bench), [expected]);
    assert_eq!(bench.recovery.counters().congestion_events, 1);
}

/// Section 7.3.2.
#[test]
fn loss_of_a_packet_sent_after_the_reduction_begins_a_new_epoch() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 4..=4);
    bench.send_many(at(200), 4);
    bench.ack(at(250), 8..=8);
    assert_eq!(reactions(&bench).len(), 2);
    assert_eq!(bench.recovery.counters().congestion_events, 2);
}

/// Section 7.1.
#[test]
fn new_ce_marks_reduce_the_window() {
    let mut bench = Bench::with_rtt(50);
    let before = bench.window();
    bench.send(at(100));
    let counts = bench.marked(1);
    bench
        .try_ack(at(150), SpaceId::Data, 1..=1, Duration::ZERO, counts)
        .unwrap();
    assert!(bench.window() < before);
    assert_eq!(reactions(&bench).len(), 1);
    assert_eq!(bench.recovery.counters().ecn_ce, 1);
    assert!(bench.recovery.had_congestion());
}

/// RFC 9000, section 13.4.2.1: counts of a reordered ACK frame are outdated.
#[test]
fn ecn_counts_of_a_reordered_ack_are_not_looked_at() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 2);
    bench.ack(at(150), 2..=2);
    let before = bench.window();
    let counts = bench.marked(1);
    bench
        .try_ack(at(151), SpaceId::Data, 1..=1, Duration::ZERO, counts)
        .unwrap();
    assert!(bench.window() >= before);
    assert_eq!(bench.recovery.counters().ecn_ce, 0);
}

#[test]
fn congestion_events_come_in_the_order_ce_loss_acknowledgment() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    let counts = bench.marked(1);
    bench
        .try_ack(at(150), SpaceId::Data, 4..=4, Duration::ZERO, counts)
        .unwrap();
    let names: Vec<_> = bench
        .seen
        .events
        .iter()
        .map(|event| match event {
            CongestionEvent::Ce(_) => "ce",
            CongestionEvent::Lost(..) => "lost",
            CongestionEvent::Acked(..) => "acked",
        })
        .collect();
    assert_eq!(names, ["ce", "lost", "acked"]);
}

#[test]
fn acknowledged_bytes_reach_the_controller_with_the_space() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 2);
    bench.ack(at(150), 1..=2);
    let [CongestionEvent::Acked(space, sample, None)] = bench.seen.events[..] else {
        panic!("one acknowledgment, no reaction: {:?}", bench.seen.events);
    };
    assert_eq!(space, SpaceId::Data);
    assert_eq!((sample.bytes, sample.prior_in_flight), (2_400, 2_400));
    assert_eq!((sample.largest_acked, sample.largest_sent), (2, 2));
    assert!(sample.rtt_updated);
}

#[test]
fn acknowledged_ack_only_packets_do_not_reach_the_controller() {
    let mut bench = Bench::with_rtt(50);
    bench.send_ack_only(at(100));
    bench.ack(at(150), 1..=1);
    assert!(bench.seen.events.is_empty());
}

/// RFC 9000, section 13.4.2.1: an ACK frame that does not increase the largest acknowledged number may be older
/// than one that did.
#[test]
fn ecn_counts_of_an_ack_with_the_same_largest_are_not_looked_at() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 2);
    bench.ack(at(150), 2..=2);
    let counts = bench.marked(1);
    bench
        .try_ack(at(151), SpaceId::Data, 1..=2, Duration::ZERO, counts)
        .unwrap();
    assert_eq!(bench.recovery.counters().ecn_ce, 0);
}

/// RFC 9000, section 13.4.2.1: the counts must cover the packets sent with ECT.
#[test]
fn acknowledged_packets_sent_with_ect_are_counted_on_the_tuple_in_use() {
    for (ect0, state) in [
        (1, EcnValidationState::Failed),
        (2, EcnValidationState::Capable),
    ] {
        let mut bench = Bench::with_rtt(50);
        let marked = OutgoingPacket {
            ecn: true,
            ..outgoing(SpaceId::Data)
        };
        bench.send_as(at(100), marked);
        bench.move_to(1);
        for ecn in [true, false, true] {
            let here = OutgoingPacket {
                tuple: 1,
                ecn,
                ..marked
            };
            bench.send_as(at(100), here);
        }
        let counts = Some(EcnCounts {
            ect0,
            ect1: 0,
            ce: 0,
        });
        bench
            .try_ack(at(150), SpaceId::Data, 1..=4, Duration::ZERO, counts)
            .unwrap();
        assert_eq!(bench.tuple.ecn.state(), state);
    }
}

/// Section 7.3.2: marks of the flight that caused the reduction cause no further one.
#[test]
fn marks_without_a_reduction_are_no_reaction() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 2);
    for (now, number) in [(150, 1), (151, 2)] {
        let counts = bench.marked(1);
        bench
            .try_ack(
                at(now),
                SpaceId::Data,
                number..=number,
                Duration::ZERO,
                counts,
            )
            .unwrap();
    }
    assert_eq!(bench.recovery.counters().ecn_ce, 2);
    assert_eq!(reactions(&bench).len(), 1);
}

/// Handles an ACK frame at `now` for `number` that reports one more CE-marked packet.
fn ack_with_new_mark(bench: &mut Bench, now: u64, number: u64) {
    let counts = bench.marked(1);
    let range = number..=number;
    bench
        .try_ack(at(now), SpaceId::Data, range, Duration::ZERO, counts)
        .expect("the packet was sent");
}

/// Section 7.3.2: the recovery period started by a CE mark covers the losses of its flight, whether they are
/// detected with the same ACK frame or with a later one.
#[test]
fn mark_and_loss_of_one_flight_are_one_reaction() {
    for marked in [4, 1] {
        let mut bench = Bench::with_rtt(50);
        bench.send_many(at(100), 5);
        ack_with_new_mark(&mut bench, 150, marked);
        let after = bench.window();
        bench.ack(at(151), 5..=5);
        assert!(!bench.losses().is_empty());
        assert_eq!(bench.window(), after);
        assert_eq!(reactions(&bench).len(), 1, "{:?}", bench.seen.events);
        assert_eq!(bench.recovery.counters().congestion_events, 1);
    }
}

#[test]
fn loss_and_mark_of_one_flight_are_one_reaction() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 5);
    bench.ack(at(150), 4..=4);
    ack_with_new_mark(&mut bench, 151, 5);
    assert_eq!(reactions(&bench).len(), 1, "{:?}", bench.seen.events);
    assert_eq!(bench.recovery.counters().congestion_events, 1);
}

#[test]
fn loss_of_a_packet_sent_after_the_reaction_to_a_mark_is_another_reaction() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    ack_with_new_mark(&mut bench, 150, 1);
    bench.send_many(at(151), 4);
    bench.ack(at(201), 5..=5);
    assert_eq!(reactions(&bench).len(), 2);
    assert_eq!(bench.recovery.counters().congestion_events, 2);
}

/// RFC 9000, section 9.4: CE marks are counted per packet number space, but may belong to packets sent
/// before a migration.
#[test]
fn marks_that_packets_of_before_a_migration_explain_are_no_congestion_signal() {
    for (new_ce, reacts) in [(1, false), (2, true)] {
        let mut bench = Bench::with_rtt(50);
        for tuple in [0, 1] {
            let marked = OutgoingPacket {
                ecn: true,
                ..on_tuple(tuple)
            };
            bench.send_as(at(100), marked);
            if tuple == 0 {
                bench.recovery.reset(Bench::config());
                bench.move_to(1);
            }
        }
        let counts = bench.marked(new_ce);
        bench
            .try_ack(at(150), SpaceId::Data, 1..=2, Duration::ZERO, counts)
            .expect("both were sent");
        assert_eq!(reactions(&bench).len(), usize::from(reacts), "{new_ce}");
        assert_eq!(bench.recovery.had_congestion(), reacts);
        assert_eq!(bench.recovery.counters().ecn_ce, new_ce);
    }
}

/// RFC 9000, section 9.4.
#[test]
fn marks_of_packets_before_a_rebinding_are_congestion_signals() {
    let mut bench = Bench::with_rtt(50);
    let marked = OutgoingPacket {
        ecn: true,
        ..outgoing(SpaceId::Data)
    };
    bench.send_as(at(100), marked);
    bench.recovery.on_rebinding(0);
    bench.move_to(1);
    ack_with_new_mark(&mut bench, 150, 1);
    assert_eq!(reactions(&bench).len(), 1);
}

/// A controller that reacts only to losses.
#[test]
fn loss_is_a_reaction_after_a_mark_that_was_none() {
    let mut bench = Bench::with(Algorithm::Bbr, None);
    bench.send(at(0));
    bench.ack(at(50), 0..=0);
    bench.send_many(at(100), 4);
    ack_with_new_mark(&mut bench, 150, 4);
    assert_eq!(reactions(&bench).len(), 1);
    assert_eq!(bench.recovery.counters().congestion_events, 1);
}

/// Ends slow start at the first acknowledgment.
#[derive(Debug)]
struct AtOnce;

impl SlowStartExit for AtOnce {
    fn on_round_start(&mut self) {}

    fn on_ack(&mut self, _sample: &SlowStartSample) -> SlowStartDecision {
        SlowStartDecision::Exit
    }

    fn reset(&mut self) {}

    fn name(&self) -> &'static str {
        "at-once"
    }
}

#[test]
fn leaving_slow_start_because_of_a_round_trip_time_is_a_reaction() {
    let controller = Algorithm::NewReno.build(ControllerConfig {
        slow_start_exit: Box::new(AtOnce),
        ..ControllerConfig::new(SIZE.into())
    });
    let mut bench = Bench::with_controller(controller, None);
    let before = bench.window();
    bench.send_many(at(0), 2);
    bench.ack(at(50), 0..=0);
    bench.ack(at(50), 1..=1);
    let expected = Reaction {
        persistent: false,
        before,
        after: before,
    };
    assert_eq!(reactions(&bench), [expected], "once");
}

/// Section 7.3.1: the window reaches a slow-start threshold set by an earlier congestion event.
#[test]
fn reaching_a_known_slow_start_threshold_is_no_reaction() {
    let mut bench = Bench::with_rtt(50);
    bench.recovery.on_congestion_limited(true);
    let threshold = bench.window() + 1;
    bench.recovery.controller_mut().set_ssthresh(threshold);
    assert!(bench.recovery.controller().in_slow_start());
    bench.send(at(100));
    bench.ack(at(150), 1..=1);
    assert!(!bench.recovery.controller().in_slow_start());
    assert_eq!(reactions(&bench), []);
}
