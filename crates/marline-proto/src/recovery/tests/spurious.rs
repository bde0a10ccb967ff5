//! Spurious losses.

use super::*;

#[test]
fn late_packet_is_reported_and_does_not_count_as_in_flight_again() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 2..=4);
    assert_eq!(bench.seen.lost, [1]);
    bench.ack(at(160), 1..=4);
    assert_eq!(bench.seen.spurious, [1]);
    assert_eq!(bench.seen.acked, [2, 3, 4, 1]);
    assert_eq!(bench.recovery.in_flight(), 0);
    assert_eq!(bench.recovery.counters().spurious_losses, 1);
}

#[test]
fn epoch_whose_losses_were_all_spurious_is_undone_by_controllers_that_can() {
    let mut bench = Bench::with(Algorithm::Cubic, None);
    bench.send(at(0));
    bench.ack(at(50), 0..=0);
    let before = bench.window();
    bench.send_many(at(100), 5);
    bench.ack(at(150), 5..=5);
    assert_eq!(bench.seen.lost, [1, 2]);
    assert!(bench.window() < before);
    bench.ack(at(155), 1..=1);
    let reduced = bench.window();
    assert!(reduced < before, "one loss is still unexplained");
    assert_eq!(bench.recovery.counters().undone_reductions, 0);
    bench.ack(at(160), 2..=2);
    assert!(bench.window() > reduced);
    assert_eq!(bench.recovery.counters().undone_reductions, 1);
}

/// A window reduced by losses 1 and 2, of which all but the last have turned out spurious.
fn reduced_by_two_losses(first: OutgoingPacket) -> Bench {
    let mut bench = Bench::with(Algorithm::Cubic, None);
    bench.send(at(0));
    bench.ack(at(50), 0..=0);
    bench.send_as(at(100), first);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 5..=5);
    assert_eq!(bench.seen.lost, [1, 2]);
    bench
}

#[test]
fn late_ack_only_packet_explains_no_loss() {
    let mut bench = reduced_by_two_losses(OutgoingPacket {
        ack_eliciting: false,
        in_flight: false,
        ..outgoing(SpaceId::Data)
    });
    let reduced = bench.window();
    bench.ack(at(155), 1..=1);
    assert_eq!(bench.seen.spurious, [1]);
    assert_eq!(bench.window(), reduced);
    bench.ack(at(160), 2..=2);
    assert!(bench.window() > reduced);
}

#[test]
fn late_probe_for_larger_datagrams_explains_no_loss() {
    let mut bench = reduced_by_two_losses(OutgoingPacket {
        mtu_probe: true,
        ..outgoing(SpaceId::Data)
    });
    let reduced = bench.window();
    bench.ack(at(155), 1..=1);
    assert_eq!(bench.seen.spurious, [1]);
    assert_eq!(bench.window(), reduced);
}

#[test]
fn late_packet_of_another_tuple_explains_no_loss() {
    let mut bench = reduced_by_two_losses(OutgoingPacket {
        tuple: 7,
        ..outgoing(SpaceId::Data)
    });
    let reduced = bench.window();
    bench.move_to(7);
    bench.ack(at(155), 1..=1);
    assert_eq!(bench.seen.spurious, [1]);
    assert_eq!(bench.window(), reduced);
}

#[test]
fn late_packet_of_an_earlier_epoch_does_not_explain_the_latest() {
    let mut bench = Bench::with(Algorithm::Cubic, None);
    bench.send(at(0));
    bench.ack(at(50), 0..=0);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 4..=4);
    bench.send_many(at(151), 4);
    bench.ack(at(201), 8..=8);
    assert_eq!(bench.seen.lost, [1, 2, 3, 5]);
    let reduced = bench.window();
    bench.ack(at(202), 1..=1);
    assert_eq!(bench.window(), reduced);
    for number in [2, 3] {
        bench.ack(at(203), number..=number);
    }
    assert_eq!(bench.window(), reduced);
    bench.ack(at(204), 5..=5);
    assert!(bench.window() > reduced);
}

/// RFC 9000, section 9.4.
#[test]
fn late_packet_of_before_a_migration_does_not_explain_an_epoch_after_it() {
    let mut bench = Bench::with(Algorithm::Cubic, None);
    bench.send(at(0));
    bench.ack(at(50), 0..=0);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 4..=4);
    let config = Bench::config_of(
        Algorithm::Cubic.build(ControllerConfig::new(SIZE.into())),
        None,
    );
    bench.recovery.reset(config);
    bench.move_to(1);
    for _ in 0..4 {
        let here = OutgoingPacket {
            tuple: 1,
            ..outgoing(SpaceId::Data)
        };
        bench.send_as(at(151), here);
    }
    bench.ack(at(201), 8..=8);
    assert_eq!(bench.seen.lost, [1, 2, 3, 5]);
    let reduced = bench.window();
    bench.ack(at(202), 1..=3);
    assert_eq!(bench.window(), reduced);
}

/// RFC 9000, section 9.4: reordering on the former path is not relevant to this one.
#[test]
fn loss_detector_does_not_learn_from_packets_of_before_a_migration() {
    for (tuple, learns) in [(0, true), (1, false)] {
        let mut bench = Bench::new();
        bench.recovery = Recovery::new(RecoveryConfig {
            detector: Box::new(loss::Adaptive::default()),
            ..Bench::config()
        });
        bench.send_many(at(100), 5);
        bench.ack(at(150), 4..=4);
        assert_eq!(bench.seen.lost, [0, 1]);
        bench.move_to(tuple);
        bench.ack(at(400), 0..=0);
        assert_eq!(bench.seen.spurious, [0]);
        let threshold = bench.recovery.detector().packet_threshold();
        assert_eq!(threshold != Some(3), learns, "{threshold:?}");
    }
}

/// CE marks and losses of one flight, in either order: the marks alone require the reduction.
#[test]
fn reaction_that_marks_demand_is_not_undone() {
    for marked_first in [true, false] {
        let mut bench = Bench::with(Algorithm::Cubic, None);
        bench.send(at(0));
        bench.ack(at(50), 0..=0);
        let before = bench.window();
        bench.send_many(at(100), 5);
        for (number, is_marked) in [(4, marked_first), (5, !marked_first)] {
            let counts = is_marked.then(|| bench.marked(1));
            let range = number..=number;
            bench
                .try_ack(
                    at(150),
                    SpaceId::Data,
                    range,
                    Duration::ZERO,
                    counts.flatten(),
                )
                .expect("the packets were sent");
        }
        assert_eq!(bench.seen.lost, [1, 2]);
        let reduced = bench.window();
        assert!(reduced < before);
        bench.ack(at(160), 1..=2);
        assert_eq!(bench.seen.spurious, [1, 2]);
        assert_eq!(bench.window(), reduced, "marked first: {marked_first}");
        assert_eq!(bench.recovery.counters().undone_reductions, 0);
    }
}

#[test]
fn lost_packets_are_remembered_for_three_probe_timeouts() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 2..=4);
    bench.send(at(2_000));
    bench.ack(at(2_050), 5..=5);
    assert_eq!(bench.ack(at(2_051), 1..=5), None);
    assert!(bench.seen.spurious.is_empty());
}

/// Section 7.3.2: a new epoch starts with a packet sent after the start of the previous one.
#[test]
fn loss_of_a_packet_sent_at_the_moment_of_the_reduction_is_of_the_same_epoch() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 4..=4);
    bench.send_many(at(150), 4);
    bench.ack(at(200), 8..=8);
    assert_eq!(bench.seen.lost, [1, 2, 3, 5]);
    assert_eq!(bench.recovery.counters().congestion_events, 1);
    bench.send_many(at(151), 4);
    bench.ack(at(201), 12..=12);
    assert_eq!(bench.recovery.counters().congestion_events, 2);
}
