//! ACK frames that are invalid or excessive (RFC 9000, sections 13.1, 19.3 and 21.4).

use super::*;
use crate::limits::MAX_RECEIVED_RANGES;
use marline_wire::varint;

const ACK: u64 = 0x02;
const ACK_ECN: u64 = 0x03;

/// Makes the victim send an ack-eliciting packet, which is lost; returns its number.
fn send_one(attack: &mut Attack) -> u64 {
    attack.victim().ping();
    attack.drain();
    attack.victim().next_data_number() - 1
}

#[test]
fn an_ack_of_an_unsent_packet_closes_with_protocol_violation() {
    let mut attack = Attack::by(Side::Client);
    let next = attack.victim().next_data_number();
    attack.send(&varints(&[ACK, next, 0, 0, 0]));
    assert_eq!(attack.close_code(), Some(ErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn an_ack_of_the_largest_packet_number_closes_with_protocol_violation() {
    closes(
        Side::Client,
        &varints(&[ACK, varint::MAX, 0, 0, varint::MAX]),
        ErrorCode::PROTOCOL_VIOLATION,
    );
}

#[test]
fn an_ack_of_a_skipped_packet_number_closes_with_protocol_violation() {
    let mut attack = Attack::by(Side::Client);
    let skipped = attack.victim().skip_next();
    let sent = send_one(&mut attack);
    assert_eq!(sent, skipped + 1);
    attack.send(&varints(&[ACK, sent, 0, 0, 0]));
    assert_eq!(attack.close_code(), None, "a valid ACK");
    let mut attack = Attack::by(Side::Client);
    attack.victim().skip_next();
    let sent = send_one(&mut attack);
    attack.send(&varints(&[ACK, sent, 0, 0, 1]));
    assert_eq!(attack.close_code(), Some(ErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn an_ack_range_below_zero_is_a_frame_encoding_error() {
    for frame in [
        varints(&[ACK, 5, 0, 0, 6]),
        varints(&[ACK, 5, 0, 1, 0, 4, 0]),
        varints(&[ACK, 5, 0, 1, 0, varint::MAX, varint::MAX]),
    ] {
        closes(Side::Client, &frame, ErrorCode::FRAME_ENCODING_ERROR);
    }
}

#[test]
fn an_ack_with_fewer_ranges_than_its_count_is_a_frame_encoding_error() {
    for count in [1, 1 << 20, varint::MAX] {
        let frame = varints(&[ACK, 5, 0, count, 0]);
        closes(Side::Client, &frame, ErrorCode::FRAME_ENCODING_ERROR);
    }
}

#[test]
fn the_largest_ack_delay_does_not_make_the_rtt_implausible() {
    let mut attack = Attack::by(Side::Client);
    let before = attack.victim().rtt();
    let sent = send_one(&mut attack);
    attack.pair.now += Duration::from_millis(20);
    attack.send(&varints(&[ACK, sent, varint::MAX, 0, 0]));
    assert_eq!(attack.close_code(), None);
    assert!(attack.victim().rtt() > before / 2);
}

#[test]
fn impossible_ecn_counts_do_not_close_the_connection() {
    let mut attack = Attack::by(Side::Client);
    for counts in [[varint::MAX; 3], [0; 3], [0, varint::MAX, 0]] {
        let sent = send_one(&mut attack);
        let [ect0, ect1, ce] = counts;
        attack.send(&varints(&[ACK_ECN, sent, 0, 0, 0, ect0, ect1, ce]));
        assert_eq!(attack.close_code(), None);
    }
}

#[test]
fn repeated_acks_change_nothing() {
    let mut attack = Attack::by(Side::Client);
    let sent = send_one(&mut attack);
    let frame = varints(&[ACK, sent, 0, 0, sent]);
    attack.send(&frame.repeat(100));
    assert_eq!(attack.close_code(), None);
    assert_eq!(attack.victim().stats().paths[0].bytes_in_flight, 0);
}

#[test]
fn received_ranges_stay_within_their_limit() {
    let mut attack = Attack::by(Side::Client);
    let now = attack.pair.now;
    for n in 0..2000 {
        let datagram = attack.attacker().craft(now, SpaceId::Data, &[0x01]);
        if n % 2 == 0 {
            attack.deliver(datagram);
        }
    }
    assert_eq!(attack.close_code(), None);
    assert!(attack.victim().held().received_ranges <= MAX_RECEIVED_RANGES);
    let sent = attack.drain();
    assert_eq!(sent.datagrams, 1);
    assert!(sent.bytes <= 1472, "{} bytes", sent.bytes);
}

/// The PING would stay due, and with it the ACK frame that it repeats.
#[test]
fn the_largest_ack_frames_leave_room_for_a_ping() {
    // Ranges of two and of nine bytes: one of these mixtures fills the packet exactly.
    for short in 0..9 {
        let mut attack = Attack::by(Side::Client);
        let now = attack.pair.now;
        let victim = attack.victim();
        let received = &mut victim.paths[Slot::FIRST].space.received;
        let mut number = received.largest().unwrap_or_default();
        for range in 0..MAX_RECEIVED_RANGES {
            let is_short = range >= MAX_RECEIVED_RANGES - short;
            number += if is_short { 10 } else { 2_000_000_000 };
            received.on_packet(now, number, true, None);
        }
        received.acknowledge_by(now);
        victim.ping();
        let sent = attack.drain().datagrams;
        assert!(sent <= 2, "{sent} datagrams");
        assert!(!attack.victim().paths[Slot::FIRST].ping_due);
    }
}
