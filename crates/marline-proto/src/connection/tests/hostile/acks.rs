//! Acknowledgments of what was never sent, and of too much (RFC 9000, sections 13.1, 19.3 and 21.4).

use super::*;
use crate::limits::MAX_RECEIVED_RANGES;
use marline_wire::varint;

const ACK: u64 = 0x02;
const ACK_ECN: u64 = 0x03;

/// The victim sends something ack-eliciting that its peer never gets; returns its number.
fn send_one(siege: &mut Siege) -> u64 {
    siege.victim().ping();
    siege.drain();
    siege.victim().next_data_number() - 1
}

#[test]
fn an_ack_of_an_unsent_packet_closes_with_protocol_violation() {
    let mut siege = Siege::by(Side::Client);
    let next = siege.victim().next_data_number();
    siege.say(&varints(&[ACK, next, 0, 0, 0]));
    assert_eq!(siege.verdict(), Some(ErrorCode::PROTOCOL_VIOLATION));
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
    let mut siege = Siege::by(Side::Client);
    let skipped = siege.victim().skip_next();
    let sent = send_one(&mut siege);
    assert_eq!(sent, skipped + 1);
    siege.say(&varints(&[ACK, sent, 0, 0, 0]));
    assert_eq!(siege.verdict(), None, "the honest answer");
    let mut siege = Siege::by(Side::Client);
    siege.victim().skip_next();
    let sent = send_one(&mut siege);
    siege.say(&varints(&[ACK, sent, 0, 0, 1]));
    assert_eq!(siege.verdict(), Some(ErrorCode::PROTOCOL_VIOLATION));
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
    let mut siege = Siege::by(Side::Client);
    let before = siege.victim().rtt();
    let sent = send_one(&mut siege);
    siege.pair.now += Duration::from_millis(20);
    siege.say(&varints(&[ACK, sent, varint::MAX, 0, 0]));
    assert_eq!(siege.verdict(), None);
    assert!(siege.victim().rtt() > before / 2);
}

#[test]
fn impossible_ecn_counts_do_not_close_the_connection() {
    let mut siege = Siege::by(Side::Client);
    for counts in [[varint::MAX; 3], [0; 3], [0, varint::MAX, 0]] {
        let sent = send_one(&mut siege);
        let [ect0, ect1, ce] = counts;
        siege.say(&varints(&[ACK_ECN, sent, 0, 0, 0, ect0, ect1, ce]));
        assert_eq!(siege.verdict(), None, "ECN is given up, nothing else");
    }
}

#[test]
fn repeated_acks_change_nothing() {
    let mut siege = Siege::by(Side::Client);
    let sent = send_one(&mut siege);
    let frame = varints(&[ACK, sent, 0, 0, sent]);
    siege.say(&frame.repeat(100));
    assert_eq!(siege.verdict(), None);
    assert_eq!(siege.victim().stats().paths[0].bytes_in_flight, 0);
}

#[test]
fn received_ranges_stay_within_their_limit() {
    let mut siege = Siege::by(Side::Client);
    let now = siege.pair.now;
    for n in 0..2000 {
        let datagram = siege.attacker().craft(now, SpaceId::Data, &[0x01]);
        if n % 2 == 0 {
            siege.deliver(datagram);
        }
    }
    assert_eq!(siege.verdict(), None);
    assert!(siege.victim().held().received_ranges <= MAX_RECEIVED_RANGES);
    let (datagrams, bytes) = siege.drain();
    assert!(
        datagrams == 1 && bytes <= 1472,
        "{datagrams} datagrams of {bytes} bytes"
    );
}
