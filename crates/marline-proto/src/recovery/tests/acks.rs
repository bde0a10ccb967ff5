//! Effects of ACK frames (sections 5 and 6.2.1, appendix A.7).

use super::*;

#[test]
fn sent_bytes_are_in_flight_until_acknowledged() {
    let mut bench = Bench::new();
    bench.send_many(at(0), 3);
    assert_eq!(bench.recovery.in_flight(), 3_600);
    bench.ack(at(50), 0..=1);
    assert_eq!(bench.recovery.in_flight(), 1_200);
}

#[test]
fn ack_only_packets_are_never_in_flight() {
    let mut bench = Bench::new();
    bench.send_ack_only(at(0));
    assert_eq!(bench.recovery.in_flight(), 0);
    bench.send(at(0));
    bench.ack(at(50), 0..=1);
    assert_eq!(bench.recovery.in_flight(), 0);
}

#[test]
fn padding_without_ack_eliciting_frames_counts_as_in_flight() {
    let mut bench = Bench::new();
    let padded = OutgoingPacket {
        ack_eliciting: false,
        ..outgoing(SpaceId::Data)
    };
    bench.send_as(at(0), padded);
    assert_eq!(bench.recovery.in_flight(), 1_200);
    assert_eq!(bench.timer(at(0)), None, "nothing asks for an answer");
}

#[test]
fn tokens_return_once_when_first_acknowledged() {
    let mut bench = Bench::new();
    bench.send_many(at(0), 3);
    assert!(bench.ack(at(50), 0..=1).is_some());
    assert_eq!(bench.ack(at(51), 0..=1), None, "nothing new");
    bench.ack(at(52), 0..=2);
    assert_eq!(bench.seen.acked, [0, 1, 2]);
}

#[test]
fn unsent_packet_number_is_refused() {
    let mut bench = Bench::new();
    bench.send(at(0));
    let refused = bench.try_ack(at(50), SpaceId::Data, 0..=1, Duration::ZERO, None);
    assert_eq!(refused, Err(BadAck(1)));
}

#[test]
fn skipped_packet_number_is_refused() {
    let mut bench = Bench::new();
    bench.send(at(0));
    bench.spaces[SpaceId::Data as usize].skip(at(0));
    bench.send(at(0));
    let refused = bench.try_ack(at(50), SpaceId::Data, 0..=2, Duration::ZERO, None);
    assert_eq!(refused, Err(BadAck(1)));
}

/// Section 5.1.
#[test]
fn rtt_sample_needs_the_largest_acknowledged_to_be_new() {
    let mut bench = Bench::new();
    bench.send_many(at(0), 2);
    bench.ack(at(50), 1..=1);
    bench.ack(at(90), 0..=1);
    assert_eq!(bench.recovery.rtt().latest(), ms(50));
}

/// Section 5.1.
#[test]
fn rtt_sample_needs_an_ack_eliciting_packet() {
    let mut bench = Bench::new();
    bench.send_ack_only(at(0));
    bench.ack(at(50), 0..=0);
    assert!(!bench.recovery.rtt().has_sample());
}

/// Section 5.1: one ack-eliciting packet among the newly acknowledged ones suffices.
#[test]
fn rtt_sample_is_taken_from_the_largest_even_if_only_another_is_ack_eliciting() {
    let mut bench = Bench::new();
    bench.send(at(0));
    bench.send_ack_only(at(10));
    bench.ack(at(50), 0..=1);
    assert_eq!(bench.recovery.rtt().latest(), ms(40));
}

/// Section 5.3.
#[test]
fn ack_delay_is_subtracted_up_to_max_ack_delay_once_confirmed() {
    let mut bench = Bench::with_rtt(50);
    let number = bench.send(at(100));
    bench
        .try_ack(at(200), SpaceId::Data, number..=number, ms(40), None)
        .unwrap();
    let smoothed = (ms(50) * 7 + ms(75)) / 8;
    assert_eq!(bench.recovery.rtt().smoothed(), smoothed);
}

/// Section 5.3.
#[test]
fn ack_delay_is_not_bounded_before_the_handshake_is_confirmed() {
    let mut bench = Bench::with_rtt(50);
    bench.confirmed = false;
    let number = bench.send(at(100));
    bench
        .try_ack(at(200), SpaceId::Data, number..=number, ms(40), None)
        .unwrap();
    let smoothed = (ms(50) * 7 + ms(60)) / 8;
    assert_eq!(bench.recovery.rtt().smoothed(), smoothed);
}

/// RFC 9000, section 9.4.
#[test]
fn packets_of_an_abandoned_tuple_give_no_rtt_sample_and_no_credit() {
    let mut bench = Bench::new();
    bench.send(at(0));
    bench.move_to(1);
    let window = bench.window();
    bench.ack(at(50), 0..=0);
    assert!(!bench.recovery.rtt().has_sample());
    assert_eq!(bench.window(), window);
    assert_eq!(bench.recovery.in_flight(), 0);
    assert_eq!(bench.recovery.delivered(), 0);
    assert!(bench.seen.events.is_empty());
}

/// RFC 9000, section 9.4: a change of ports keeps all estimates.
#[test]
fn packets_of_the_tuple_before_a_rebinding_still_count() {
    let mut bench = Bench::new();
    bench.send(at(0));
    bench.recovery.on_rebinding(0);
    bench.move_to(1);
    bench.ack(at(50), 0..=0);
    assert_eq!(bench.recovery.rtt().latest(), ms(50));
}

/// Section 6.2.1.
#[test]
fn acknowledgment_resets_the_pto_count() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.fire(at(300));
    bench.fire(at(600));
    assert_eq!(bench.recovery.pto_count(), 2);
    let outcome = bench.ack(at(700), 1..=1).unwrap();
    assert_eq!(outcome.timeouts, 2);
    assert_eq!(bench.recovery.pto_count(), 0);
}

/// Section 6.2.1.
#[test]
fn client_keeps_its_pto_count_until_the_server_validated_its_address() {
    let mut bench = Bench::new();
    bench.validated = false;
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    bench.fire(at(1_000));
    bench.ack_in(at(1_050), SpaceId::Initial, 0..=0);
    assert_eq!(bench.recovery.pto_count(), 1);
}

#[test]
fn acknowledgment_that_does_not_prove_the_path_keeps_the_pto_count() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.fire(at(300));
    bench.proven_from = Some(at(200));
    let outcome = bench.ack(at(400), 1..=1).unwrap();
    assert!(!outcome.proves_path);
    assert_eq!(bench.recovery.pto_count(), 1);
}

#[test]
fn spaces_count_their_packets_on_their_own() {
    let mut bench = Bench::new();
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    bench.send_as(at(0), outgoing(SpaceId::Handshake));
    bench.ack_in(at(50), SpaceId::Handshake, 0..=0);
    assert_eq!(bench.recovery.in_flight(), 1_200);
    assert!(bench.spaces[SpaceId::Initial as usize].has_ack_eliciting_in_flight());
}

#[test]
fn larger_datagram_size_reaches_the_controller() {
    let mut bench = Bench::with_rtt(50);
    bench.raise_mtu(100, 1_452);
    // The minimum window is two datagrams (section 7.2).
    bench.recovery.controller_mut().set_window(1);
    assert_eq!(bench.window(), 2 * 1_452);
}

/// Appendix A.11.
#[test]
fn discarded_space_leaves_nothing_in_flight_and_no_backoff() {
    let mut bench = Bench::new();
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    bench.send(at(0));
    bench.fire(at(1_000));
    let sent = &mut bench.spaces[SpaceId::Initial as usize];
    bench.recovery.on_space_discarded(SpaceId::Initial, sent);
    assert_eq!(bench.recovery.in_flight(), 1_200);
    assert_eq!(bench.recovery.pto_count(), 0);
    assert!(bench.seen.due_again.is_empty());
}

/// Section 6.3.
#[test]
fn retry_makes_all_due_again_without_a_congestion_event() {
    let mut bench = Bench::new();
    bench.send_as(at(0), outgoing(SpaceId::Initial));
    bench.send_as(at(1), outgoing(SpaceId::Initial));
    let window = bench.window();
    bench.retry();
    assert_eq!(bench.seen.due_again, [0, 1]);
    assert_eq!(bench.recovery.in_flight(), 0);
    assert_eq!(bench.window(), window);
    assert!(bench.seen.events.is_empty());
}

/// RFC 9000, section 9.4.
#[test]
fn reset_forgets_what_was_learnt_and_keeps_what_is_in_flight() {
    let mut bench = Bench::with_rtt(50);
    bench.send_many(at(100), 4);
    bench.ack(at(150), 4..=4);
    assert_eq!(bench.seen.lost, [1]);
    bench.fire(at(300));
    bench.recovery.reset(Bench::config());
    assert!(!bench.recovery.rtt().has_sample());
    assert!(!bench.recovery.had_congestion());
    assert_eq!(bench.window(), Bench::new().window());
    assert_eq!(bench.recovery.pto_count(), 0);
    assert_eq!(bench.recovery.in_flight(), 2_400);
    assert_eq!(bench.recovery.delivered(), 0);
    assert_eq!(bench.recovery.counters().lost_packets, 1);
}

/// RFC 9000, section 9.4: packets in flight are still probed for, with the initial round-trip time.
#[test]
fn reset_keeps_the_times_of_packets_in_flight() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.fire(at(275));
    bench.recovery.reset(Bench::config());
    let pto = bench.recovery.pto(MAX_ACK_DELAY);
    assert_eq!(pto, ms(333 + 666 + 25));
    assert_eq!(bench.timer(at(300)), Some(at(100) + pto));
}

/// Section 6.2.2 and appendix A.11.
#[test]
fn discarded_space_leaves_no_timer_and_no_probes() {
    let mut bench = Bench::with_rtt(50);
    bench.send_as(at(100), outgoing(SpaceId::Handshake));
    bench.send_as(at(100), outgoing(SpaceId::Handshake));
    bench.ack_in(at(150), SpaceId::Handshake, 1..=1);
    bench.probe(SpaceId::Handshake, SpaceId::Handshake);
    assert!(bench.timer(at(150)).is_some());
    let sent = &mut bench.spaces[SpaceId::Handshake as usize];
    bench.recovery.on_space_discarded(SpaceId::Handshake, sent);
    assert_eq!(bench.timer(at(150)), None);
    assert!(!bench.recovery.is_probing());
}
