//! Probe timeouts (section 6.2).

use super::*;

/// Sections 6.2.1 and 6.2.2: smoothed 333 ms, variation 166.5 ms.
#[test]
fn first_timeout_derives_from_the_initial_rtt() {
    let mut bench = Bench::new();
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    assert_eq!(bench.timer(at(0)), Some(at(999)));
}

/// Section 6.2.1.
#[test]
fn timeout_is_srtt_plus_four_rttvar_plus_max_ack_delay() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    assert_eq!(bench.timer(at(100)), Some(at(100 + 50 + 4 * 25 + 25)));
}

/// Section 6.2.1: peers acknowledge Initial and Handshake packets immediately.
#[test]
fn max_ack_delay_is_left_out_for_handshake_packets() {
    let mut bench = Bench::with_rtt(50);
    bench.send_as(at(100), outgoing(SpaceId::Handshake));
    assert_eq!(bench.timer(at(100)), Some(at(100 + 50 + 4 * 25)));
}

/// Section 6.2.1.
#[test]
fn timeout_restarts_with_every_ack_eliciting_packet() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.send(at(150));
    bench.send_ack_only(at(160));
    assert_eq!(bench.timer(at(160)), Some(at(150 + 175)));
}

/// Section 6.2.1.
#[test]
fn each_timeout_doubles_the_next() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    assert_eq!(bench.fire(at(275)), Some(Expired::Probe(SpaceId::Data)));
    assert_eq!(bench.timer(at(275)), Some(at(100 + 2 * 175)));
    bench.fire(at(450));
    assert_eq!(bench.timer(at(450)), Some(at(100 + 4 * 175)));
}

/// Section 6.2.1: a loss timer takes precedence.
#[test]
fn no_probe_timeout_runs_while_packets_wait_to_be_declared_lost() {
    let mut bench = Bench::with_rtt(80);
    bench.send_many(at(100), 2);
    bench.ack(at(180), 2..=2);
    assert_eq!(bench.timer(at(180)), Some(at(190)));
    assert_eq!(bench.fire(at(190)), Some(Expired::Loss(SpaceId::Data)));
    assert_eq!(bench.recovery.pto_count(), 0);
}

/// Section 6.2.1.
#[test]
fn application_data_is_no_reason_to_probe_before_the_handshake_is_confirmed() {
    let mut bench = Bench::with_rtt(50);
    bench.confirmed = false;
    bench.send(at(100));
    assert_eq!(bench.timer(at(100)), None);
}

/// Section 6.2.1: of several spaces the earliest timeout counts.
#[test]
fn earliest_space_times_out_first() {
    let mut bench = Bench::with_rtt(50);
    bench.send_as(at(100), outgoing(SpaceId::Initial));
    bench.send_as(at(110), outgoing(SpaceId::Handshake));
    assert_eq!(bench.timer(at(110)), Some(at(250)));
    assert_eq!(bench.fire(at(250)), Some(Expired::Probe(SpaceId::Initial)));
}

/// Section 6.2.2.1: the server may be blocked by its amplification limit.
#[test]
fn client_with_nothing_in_flight_probes_until_its_address_is_validated() {
    let mut bench = Bench::new();
    bench.validated = false;
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    bench.ack_in(at(50), SpaceId::Initial, 0..=0);
    assert_eq!(bench.timer(at(50)), Some(at(50 + 50 + 4 * 25)));
    assert_eq!(bench.timer(at(120)), Some(at(200)), "it was idle since 50");
    assert_eq!(
        bench.fire(at(200)),
        Some(Expired::Probe(SpaceId::Handshake))
    );
    bench.validated = true;
    assert_eq!(bench.timer(at(200)), None);
}

#[test]
fn path_that_may_not_send_is_not_probed() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.recovery.set_timer(at(100), None);
    assert_eq!(bench.recovery.next_timeout(), None);
    assert_eq!(bench.recovery.on_timeout(at(1_000), None), None);
    assert_eq!(bench.recovery.pto_count(), 0);
}

/// Section 6.2.4: two probes, which repeat the oldest packets.
#[test]
fn probes_of_application_data_repeat_the_two_oldest_packets() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 3);
    bench.fire(at(275));
    bench.probe(SpaceId::Data, SpaceId::Data);
    assert_eq!(bench.seen.due_again, [1, 2]);
    assert_eq!(bench.recovery.probes(SpaceId::Data), 2);
    assert!(bench.recovery.is_probing());
    bench.send_many(at(275), 2);
    assert!(!bench.recovery.is_probing());
}

/// Section 6.2.4: sender may probe in other spaces with packets in flight.
#[test]
fn probes_of_the_handshake_repeat_both_of_its_spaces() {
    let mut bench = Bench::new();
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    bench.send_as(at(0), outgoing(SpaceId::Handshake));
    bench.send(at(0));
    for space in SpaceId::ALL {
        bench.probe(SpaceId::Initial, space);
    }
    assert_eq!(bench.seen.due_again, [0, 1, 0]);
    assert_eq!(bench.recovery.probes(SpaceId::Initial), 2);
    assert_eq!(bench.recovery.probes(SpaceId::Handshake), 2);
    assert_eq!(bench.recovery.probes(SpaceId::Data), 0);
}

/// Section 6.2.4: a timeout declares no packets lost and does not reduce the window.
#[test]
fn timeout_is_no_congestion_event() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 3);
    let (window, in_flight) = (bench.window(), bench.recovery.in_flight());
    bench.fire(at(275));
    assert_eq!(bench.window(), window);
    assert_eq!(bench.recovery.in_flight(), in_flight);
    assert!(bench.seen.lost.is_empty());
}

#[test]
fn path_beside_others_is_probed_at_an_interval_that_later_doubles() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    let conditions = ProbeConditions {
        probe_interval: Some(ms(500)),
        ..bench.conditions()
    };
    for _ in 0..31 {
        bench.recovery.on_timeout(at(1_000), Some(&conditions));
    }
    assert_eq!(bench.timer_under(at(1_000), &conditions), Some(at(600)));
    bench.recovery.on_timeout(at(1_000), Some(&conditions));
    assert_eq!(bench.timer_under(at(1_000), &conditions), Some(at(1_100)));
}

#[test]
fn pauses_between_probes_end_to_grow_at_a_limit_but_never_below_the_probe_timeout() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    let mut conditions = ProbeConditions {
        longest_pause: Some(ms(1_000)),
        ..bench.conditions()
    };
    let first = bench.timer_under(at(100), &conditions).unwrap() - at(100);
    for _ in 0..10 {
        bench.recovery.on_timeout(at(1_000), Some(&conditions));
    }
    assert_eq!(bench.timer_under(at(1_000), &conditions), Some(at(1_100)));
    conditions.longest_pause = Some(ms(1));
    let shortest = bench.timer_under(at(1_000), &conditions);
    assert_eq!(shortest, Some(at(100) + first));
}

#[test]
fn stopped_path_has_no_timer_and_no_probes() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.timer(at(100));
    bench.recovery.request_probes();
    bench.recovery.stop();
    assert_eq!(bench.recovery.next_timeout(), None);
    assert!(!bench.recovery.is_probing());
}

#[test]
fn requested_probe_is_one_packet_unless_probes_are_due() {
    let mut bench = Bench::with_rtt(50);
    bench.recovery.request_probe();
    bench.recovery.request_probe();
    assert_eq!(bench.recovery.probes(SpaceId::Data), 1);
    bench.recovery.request_probes();
    bench.recovery.request_probe();
    assert_eq!(bench.recovery.probes(SpaceId::Data), 2);
    bench.send_ack_only(at(100));
    assert_eq!(bench.recovery.probes(SpaceId::Data), 2);
    bench.send(at(100));
    assert_eq!(bench.recovery.probes(SpaceId::Data), 1);
}

#[test]
fn armed_timer_says_what_it_fires_for() {
    let mut bench = Bench::with_rtt(50);
    assert_eq!(bench.timer(at(90)), None);
    assert_eq!(bench.recovery.armed_timer(), None);
    bench.send(at(100));
    assert_eq!(bench.recovery.last_ack_eliciting(), Some(at(100)));
    bench.timer(at(100));
    let expected = ArmedTimer {
        at: at(275),
        reason: Expired::Probe(SpaceId::Data),
    };
    assert_eq!(bench.recovery.armed_timer(), Some(expected));
}

/// Section 6.2.1: the period excludes the backoff of earlier timeouts, which is reset for a validated path.
#[test]
fn validated_path_gives_up_its_backoff() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.fire(at(275));
    assert_eq!(bench.recovery.pto(MAX_ACK_DELAY), ms(175));
    assert_eq!(bench.timer(at(275)), Some(at(100 + 2 * 175)));
    bench.recovery.reset_pto_count();
    assert_eq!(bench.timer(at(275)), Some(at(275)));
}
