//! Loss detection (section 6.1).

use super::*;
use crate::limits::MTU_BLACK_HOLE_ROUNDS;

/// Section 6.1.1.
#[test]
fn packet_threshold_declares_lost_what_is_three_behind() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(110), 3..=3);
    assert!(bench.seen.lost.is_empty());
    bench.ack(at(111), 4..=4);
    assert_eq!(bench.seen.lost, [1]);
    assert_eq!(bench.seen.due_again, [1]);
}

/// Section 6.1.2.
#[test]
fn time_threshold_is_nine_eighths_of_the_round_trip() {
    let mut bench = Bench::with_rtt(80);
    bench.send_many(at(100), 2);
    bench.ack(at(180), 2..=2);
    assert_eq!(bench.timer(at(180)), Some(at(190)));
    bench.detect(at(189));
    assert!(bench.seen.lost.is_empty());
    assert_eq!(bench.fire(at(190)), Some(Expired::Loss(SpaceId::Data)));
    bench.detect(at(190));
    assert_eq!(bench.seen.lost, [1]);
}

/// Section 6.1.2: the larger of the latest and the smoothed round-trip time counts.
#[test]
fn time_threshold_follows_the_newest_sample_if_it_is_larger() {
    let mut bench = Bench::with_rtt(40);
    bench.send_many(at(100), 2);
    bench.ack(at(260), 2..=2);
    assert_eq!(bench.timer(at(260)), Some(at(280)));
}

/// Section 6.1.
#[test]
fn nothing_newer_than_the_largest_acknowledged_is_lost() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 5);
    bench.ack(at(101), 1..=1);
    bench.detect(at(10_000));
    assert!(bench.seen.lost.is_empty());
}

#[test]
fn losses_leave_the_bytes_in_flight() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 5);
    bench.ack(at(150), 5..=5);
    assert_eq!(bench.seen.lost, [1, 2]);
    assert_eq!(bench.recovery.in_flight(), 2 * 1_200);
}

#[test]
fn losses_of_one_moment_are_one_sample() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 8);
    bench.ack(at(150), 8..=8);
    let losses = bench.losses();
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].packets, losses[0].bytes), (5, 6_000));
    assert_eq!((losses[0].largest_lost, losses[0].largest_sent), (5, 8));
    assert_eq!(losses[0].bytes_in_flight, bench.recovery.in_flight());
}

#[test]
fn lost_ack_only_packets_are_no_congestion_signal() {
    let mut bench = Bench::with_rtt(50);
    bench.send_ack_only(at(100));
    bench.send_many(at(100), 3);
    bench.ack(at(150), 2..=4);
    assert_eq!(bench.seen.lost, [1]);
    assert!(bench.losses().is_empty());
}

/// RFC 9000, section 14.4.
#[test]
fn lost_probes_for_larger_datagrams_are_no_congestion_signal() {
    let mut bench = Bench::with_rtt(50);
    let probe = OutgoingPacket {
        mtu_probe: true,
        ..outgoing(SpaceId::Data)
    };
    bench.send_as(at(100), probe);
    bench.send_many(at(100), 3);
    bench.ack(at(150), 2..=4);
    assert_eq!(bench.seen.lost, [1]);
    assert!(bench.losses().is_empty());
    assert_eq!(bench.recovery.in_flight(), 0);
}

/// RFC 9000, section 9.4.
#[test]
fn losses_on_an_abandoned_tuple_are_no_congestion_signal() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.move_to(1);
    for _ in 0..3 {
        let here = OutgoingPacket {
            tuple: 1,
            ..outgoing(SpaceId::Data)
        };
        bench.send_as(at(100), here);
    }
    bench.ack(at(150), 2..=4);
    assert_eq!(bench.seen.lost, [1]);
    assert_eq!(bench.seen.due_again, [1]);
    assert!(bench.losses().is_empty());
}

/// RFC 9000, section 9.4: after a change of ports the path is the same, and so is its congestion.
#[test]
fn losses_on_the_tuple_before_a_rebinding_are_congestion_signals() {
    let mut bench = Bench::with_rtt(50);
    let before = bench.window();
    bench.send(at(100));
    bench.recovery.on_rebinding(0);
    bench.move_to(1);
    for _ in 0..3 {
        bench.send_as(at(100), on_tuple(1));
    }
    bench.ack(at(150), 2..=4);
    assert_eq!(bench.seen.lost, [1]);
    assert_eq!(bench.losses().len(), 1);
    assert!(bench.window() < before);
}

/// RFC 9000, section 9.4.
#[test]
fn losses_before_two_rebindings_within_a_round_trip_are_congestion_signals() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    for former in [0, 1] {
        bench.recovery.on_rebinding(former);
    }
    bench.move_to(2);
    for _ in 0..3 {
        bench.send_as(at(100), on_tuple(2));
    }
    bench.ack(at(150), 2..=4);
    assert_eq!(bench.seen.lost, [1]);
    assert_eq!(bench.losses().len(), 1);
}

/// RFC 9000, section 9.4.
#[test]
fn losses_of_before_a_migration_to_another_host_are_no_congestion_signal() {
    let mut bench = Bench::with_rtt(50);
    bench.recovery.on_rebinding(0);
    bench.move_to(1);
    for tuple in [0, 1] {
        bench.send_as(at(100), on_tuple(tuple));
    }
    bench.recovery.reset(Bench::config());
    bench.move_to(2);
    for _ in 0..3 {
        bench.send_as(at(100), on_tuple(2));
    }
    bench.ack(at(150), 3..=5);
    assert_eq!(bench.seen.lost, [1, 2]);
    assert!(bench.losses().is_empty());
}

#[test]
fn losses_of_large_packets_alone_shrink_datagrams() {
    let mut bench = Bench::with_rtt(50);
    bench.raise_mtu(100, 1_452);
    let large = OutgoingPacket {
        size: 1_452,
        ..outgoing(SpaceId::Data)
    };
    for round in 0..u64::from(MTU_BLACK_HOLE_ROUNDS) {
        let now = 200 + 100 * round;
        let lost = bench.send_as(at(now), large);
        bench.send_many(at(now), 3);
        bench.ack(at(now + 50), lost + 1..=lost + 3);
    }
    bench.recovery.controller_mut().set_window(1);
    assert_eq!(bench.window(), 2 * 1_200);
}

#[test]
fn loss_time_is_forgotten_when_the_late_packet_arrives() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 2);
    bench.ack(at(150), 2..=2);
    assert!(bench.timer(at(150)).is_some());
    bench.ack(at(151), 1..=2);
    assert_eq!(bench.timer(at(151)), None);
}

#[test]
fn loss_timer_of_one_space_does_not_wait_for_another() {
    let mut bench = Bench::with_rtt(50);
    bench.send_as(at(100), outgoing(SpaceId::Handshake));
    bench.send_as(at(100), outgoing(SpaceId::Handshake));
    bench.send(at(100));
    bench.ack_in(at(150), SpaceId::Handshake, 1..=1);
    let timer = bench.timer(at(150)).unwrap();
    assert_eq!(bench.fire(timer), Some(Expired::Loss(SpaceId::Handshake)));
}

#[test]
fn totals_count_lost_packets_and_bytes() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 5);
    bench.ack(at(150), 5..=5);
    let counters = bench.recovery.counters();
    assert_eq!((counters.lost_packets, counters.lost_bytes), (2, 2_400));
    assert_eq!(counters.congestion_events, 1);
}
