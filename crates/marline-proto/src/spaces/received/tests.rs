use std::ops::RangeInclusive;

use marline_wire::frame::{Frame, Frames};

use super::*;

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// Receives an ack-eliciting packet; returns whether it is out of order.
fn receive(received: &mut Received, number: u64) -> bool {
    received.on_packet(at(number), number, true, None)
}

fn received(numbers: impl IntoIterator<Item = u64>) -> Received {
    let mut received = Received::default();
    for number in numbers {
        receive(&mut received, number);
    }
    received
}

/// The content of an ACK frame.
#[derive(Debug, PartialEq)]
struct Written {
    ranges: Vec<RangeInclusive<u64>>,
    delay: u64,
    ecn: Option<EcnCounts>,
}

fn write_at(received: &mut Received, now: Instant) -> Written {
    let mut buf = Vec::new();
    let largest = received.write_ack(now, None, 3, 1_000, &mut buf);
    let Some(Ok(Frame::Ack(ack))) = Frames::new(&buf).next() else {
        panic!("an ACK frame is written");
    };
    assert_eq!(largest, Some(ack.largest));
    Written {
        ranges: ack.ranges().collect(),
        delay: ack.delay,
        ecn: ack.ecn,
    }
}

fn ranges(received: &mut Received) -> Vec<RangeInclusive<u64>> {
    write_at(received, at(1_000)).ranges
}

#[test]
fn packet_that_came_before_is_a_duplicate() {
    let received = received([0, 1, 3]);
    let duplicates = [0, 1, 2, 3, 4].map(|number| received.is_duplicate(number));
    assert_eq!(duplicates, [true, true, false, true, false]);
    assert_eq!((received.total(), received.largest()), (3, Some(3)));
}

/// RFC 9000, section 13.2.3: old ranges may be dropped, and their packets must not be accepted again.
#[test]
fn packets_below_the_ranges_that_are_remembered_are_duplicates() {
    let most = MAX_RECEIVED_RANGES as u64;
    let mut received = received((0..most).map(|nth| 2 * nth + 1));
    assert_eq!(received.len(), MAX_RECEIVED_RANGES);
    assert!(!received.is_duplicate(0));
    receive(&mut received, 2 * most + 1);
    assert_eq!(received.len(), MAX_RECEIVED_RANGES);
    let duplicates = [0, 1, 2, 3].map(|number| received.is_duplicate(number));
    assert_eq!(duplicates, [true, true, false, true]);
    assert_eq!(received.smallest_missing(0), Some(2));
}

/// RFC 9000, section 13.2.1.
#[test]
fn packet_behind_a_gap_is_out_of_order() {
    let mut received = Received::default();
    let out_of_order = [4, 5, 7, 8].map(|number| receive(&mut received, number));
    assert_eq!(out_of_order, [false, false, true, false]);
}

/// RFC 9000, section 13.2.1.
#[test]
fn packet_older_than_an_ack_eliciting_one_is_out_of_order() {
    let mut received = received([0, 3]);
    assert!(receive(&mut received, 2));
    assert_eq!(received.largest(), Some(3));
    assert_eq!(received.largest_eliciting(), Some(3));
}

#[test]
fn packet_older_than_only_ack_only_ones_is_in_order() {
    let mut received = received([0]);
    assert!(!received.on_packet(at(5), 5, false, None));
    assert!(!receive(&mut received, 3));
    assert_eq!(received.largest(), Some(5));
    assert_eq!(received.largest_eliciting(), Some(3));
}

/// RFC 9000, section 13.2: packets that are not ack-eliciting need no acknowledgment.
#[test]
fn ack_only_packets_are_not_counted_as_unacknowledged() {
    let mut received = Received::default();
    received.on_packet(at(1), 0, false, None);
    assert!(!received.has_unacked());
    assert_eq!(received.unacked(), 0);
    assert_eq!(received.oldest_unacked_at(), None);
    assert_eq!(received.largest_eliciting(), None);
    receive(&mut received, 2);
    receive(&mut received, 3);
    assert!(received.has_unacked());
    assert_eq!(received.unacked(), 2);
    assert_eq!(received.oldest_unacked_at(), Some(at(2)));
}

#[test]
fn earliest_deadline_counts() {
    let mut received = received([0]);
    assert_eq!(received.deadline(), None);
    assert!(!received.is_ack_due(at(100)));
    received.acknowledge_by(at(30));
    received.acknowledge_by(at(20));
    received.acknowledge_by(at(40));
    assert_eq!(received.deadline(), Some(at(20)));
    let due = [19, 20, 21].map(|now| received.is_ack_due(at(now)));
    assert_eq!(due, [false, true, true]);
}

#[test]
fn written_ack_leaves_nothing_to_acknowledge() {
    let mut received = received([2, 4]);
    received.acknowledge_by(at(20));
    assert_eq!(received.largest_reported(), None);
    assert_eq!(ranges(&mut received), [4..=4, 2..=2]);
    assert_eq!(received.largest_reported(), Some(4));
    assert!(!received.has_unacked());
    assert_eq!(received.oldest_unacked_at(), None);
    assert_eq!(received.deadline(), None);
}

#[test]
fn ack_without_room_stays_due() {
    let mut received = received([2, 4]);
    received.acknowledge_by(at(20));
    let mut buf = Vec::new();
    assert_eq!(received.write_ack(at(9), None, 3, 2, &mut buf), None);
    assert!(buf.is_empty());
    assert_eq!(received.unacked(), 2);
    assert_eq!(received.deadline(), Some(at(20)));
    assert_eq!(received.largest_reported(), None);
}

#[test]
fn nothing_received_is_nothing_to_acknowledge() {
    let mut buf = Vec::new();
    let written = Received::default().write_ack(at(9), None, 3, 1_000, &mut buf);
    assert_eq!(written, None);
    assert!(buf.is_empty());
}

#[test]
fn ack_of_a_path_names_it() {
    let mut received = received([2]);
    let mut buf = Vec::new();
    let path = PathId(7);
    let largest = received.write_ack(at(9), Some(path), 3, 1_000, &mut buf);
    assert_eq!(largest, Some(2));
    let Some(Ok(Frame::PathAck(frame))) = Frames::new(&buf).next() else {
        panic!("a PATH_ACK frame is written");
    };
    assert_eq!((frame.path_id, frame.ack.largest), (path, 2));
}

/// RFC 9000, section 13.2.5: the delay is that of the largest packet, in units of 2^exponent microseconds.
#[test]
fn delay_counts_from_the_largest_packet() {
    let mut received = received([1, 3]);
    received.on_packet(at(10), 2, true, None);
    let written = write_at(&mut received, at(11));
    assert_eq!(written.delay, 8_000 >> 3);
}

/// RFC 9000, section 13.2.4.
#[test]
fn ranges_that_the_peer_knows_are_not_repeated() {
    let mut received = received([0, 1, 3, 4]);
    ranges(&mut received);
    received.on_ack_acked(4);
    receive(&mut received, 6);
    assert_eq!(ranges(&mut received), [6..=6, 3..=4]);
    received.on_ack_acked(1);
    assert_eq!(ranges(&mut received), [6..=6, 3..=4], "an older ACK");
    receive(&mut received, 1_000);
    received.on_ack_acked(1_000);
    assert_eq!(ranges(&mut received), [1_000..=1_000]);
    assert!(received.is_duplicate(0), "numbers stay known");
}

#[test]
fn late_packet_below_what_the_peer_knows_is_reported() {
    let mut received = received([0, 1, 3, 4]);
    received.on_ack_acked(4);
    receive(&mut received, 2);
    assert_eq!(ranges(&mut received), [0..=4]);
}

/// RFC 9000, section 13.4.1.
#[test]
fn each_codepoint_is_counted_and_reported() {
    for codepoint in [EcnCodepoint::Ect0, EcnCodepoint::Ect1, EcnCodepoint::Ce] {
        let mut received = Received::default();
        assert_eq!(
            received.write_ack(at(0), None, 3, 1_000, &mut Vec::new()),
            None
        );
        receive(&mut received, 0);
        assert_eq!(write_at(&mut received, at(0)).ecn, None, "no mark was seen");
        for number in 1..=3 {
            received.on_packet(at(1), number, true, Some(codepoint));
        }
        let counts = EcnCounts {
            ect0: 3 * u64::from(codepoint == EcnCodepoint::Ect0),
            ect1: 3 * u64::from(codepoint == EcnCodepoint::Ect1),
            ce: 3 * u64::from(codepoint == EcnCodepoint::Ce),
        };
        assert_eq!(write_at(&mut received, at(1)).ecn, Some(counts));
    }
}

#[test]
fn smallest_missing_number_is_below_the_largest_ack_eliciting_one() {
    assert_eq!(Received::default().smallest_missing(0), None);
    assert_eq!(received([0, 1, 2]).smallest_missing(0), None);
    assert_eq!(received([2, 3]).smallest_missing(0), Some(0));
    assert_eq!(received([0]).smallest_missing(0), None);
    let mut received = received([0, 1, 4, 6]);
    assert_eq!(received.smallest_missing(0), Some(2));
    receive(&mut received, 2);
    receive(&mut received, 3);
    assert_eq!(received.smallest_missing(0), Some(5));
    receive(&mut received, 5);
    received.on_packet(at(9), 9, false, None);
    assert_eq!(received.smallest_missing(0), None, "9 is not ack-eliciting");
}

/// The reordering threshold of the ACK frequency extension: numbers reported as missing are not reported again.
#[test]
fn numbers_far_below_what_was_reported_are_not_missing() {
    let mut received = received([0, 1, 2, 3, 4, 5, 6, 8, 10]);
    ranges(&mut received);
    receive(&mut received, 11);
    assert_eq!(received.smallest_missing(4), Some(7));
    assert_eq!(received.smallest_missing(3), Some(9));
    assert_eq!(received.smallest_missing(1), None);
    receive(&mut received, 13);
    assert_eq!(received.smallest_missing(1), Some(12));
    assert_eq!(received.smallest_missing(100), Some(7));
}

#[test]
fn a_gap_counts_as_missing_once_it_is_old_and_no_longer_when_it_is_filled() {
    let mut received = received((0..10).chain(12..40));
    assert_eq!(received.missing(), 0);
    for number in 40..50 {
        receive(&mut received, number);
    }
    assert_eq!(received.missing(), 2);
    receive(&mut received, 11);
    assert_eq!(received.missing(), 1);
}

proptest::proptest! {
    /// For any reordering within the tolerance, the count is that of numbers that never arrived.
    #[test]
    fn what_is_missing_is_what_never_arrived(
        lost in proptest::collection::vec(proptest::bool::weighted(0.1), 1..400),
        late in proptest::collection::vec(0..LATE_PACKETS / 2, 400),
    ) {
        let mut arrivals: Vec<_> = (0..lost.len() as u64)
            .filter(|number| !lost[*number as usize])
            .map(|number| (number + late[number as usize], number))
            .collect();
        arrivals.sort_unstable();
        let mut received = Received::default();
        for (_, number) in arrivals {
            receive(&mut received, number);
            let largest = received.largest().unwrap();
            let until = largest.saturating_sub(LATE_PACKETS);
            let never = lost[..until as usize].iter().filter(|lost| **lost).count() as u64;
            proptest::prop_assert_eq!(received.missing(), never);
        }
    }
}
