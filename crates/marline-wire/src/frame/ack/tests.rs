use super::*;
use crate::frame::PathAck;
use crate::{Frame, FrameError, Frames, PathId};
use proptest::prelude::*;

fn decode(bytes: &[u8]) -> Result<Ack<'_>, FrameError> {
    let mut frames = Frames::new(bytes);
    match frames.next().expect("a frame")? {
        Frame::Ack(ack) => {
            assert_eq!(frames.next(), None);
            Ok(ack)
        }
        frame => panic!("{frame:?} is no ACK"),
    }
}

fn ecn() -> impl Strategy<Value = Option<EcnCounts>> {
    let count = 0..=varint::MAX;
    proptest::option::of((count.clone(), count.clone(), count))
        .prop_map(|counts| counts.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce }))
}

/// Ranges in descending order, from lengths and gaps.
fn ranges() -> impl Strategy<Value = Vec<RangeInclusive<u64>>> {
    let steps = proptest::collection::vec((0..1u64 << 20, 0..1u64 << 20), 1..200);
    (0..1u64 << 40, steps).prop_map(|(lowest, steps)| {
        let mut next = lowest;
        let mut ranges: Vec<_> = steps
            .into_iter()
            .map(|(len, gap)| {
                let range = next..=next + len;
                next = range.end() + 2 + gap;
                range
            })
            .collect();
        ranges.reverse();
        ranges
    })
}

#[test]
fn decodes_a_handwritten_frame() {
    let bytes = [0x03, 20, 5, 1, 2, 0, 16, 7, 8, 9];
    let ack = decode(&bytes).unwrap();
    assert_eq!((ack.largest, ack.delay), (20, 5));
    assert!(ack.ranges().eq([18..=20, 0..=16]));
    let counts = EcnCounts {
        ect0: 7,
        ect1: 8,
        ce: 9,
    };
    assert_eq!(ack.ecn, Some(counts));
}

#[test]
fn ranges_below_packet_number_zero_are_errors() {
    for bytes in [
        &[0x02, 3, 0, 0, 4][..],
        &[0x02, 3, 0, 1, 1, 1, 0],
        &[0x02, 9, 0, 1, 0, 0, 8],
    ] {
        let FrameError { kind, .. } = decode(bytes).unwrap_err();
        assert!(matches!(kind, FrameErrorKind::Invalid(_)), "{bytes:?}");
    }
}

#[test]
fn a_range_count_beyond_the_payload_is_truncated() {
    let bytes = [0x02, 9, 0, 0xff, 255, 255, 255, 255, 255, 255, 255, 0];
    assert_eq!(decode(&bytes).unwrap_err().kind, FrameErrorKind::Truncated);
}

#[test]
fn no_ranges_encode_no_frame() {
    let mut buf = Vec::new();
    assert_eq!(Ack::encode(std::iter::empty(), 0, None, &mut buf), 0);
    assert!(buf.is_empty());
}

proptest! {
    #[test]
    fn decode_inverts_encode_for_every_prefix(ranges in ranges(), delay in 0..=varint::MAX, ecn in ecn()) {
        let mut buf = Vec::new();
        prop_assert_eq!(Ack::encode(ranges.iter().cloned(), delay, ecn, &mut buf), ranges.len());
        let ack = decode(&buf).unwrap();
        prop_assert_eq!(ack.largest, *ranges[0].end());
        prop_assert_eq!(ack.delay, delay);
        prop_assert_eq!(ack.ecn, ecn);
        prop_assert_eq!(ack.ranges().collect::<Vec<_>>(), ranges);
        for len in 1..buf.len() {
            prop_assert!(decode(&buf[..len]).is_err());
        }
    }

    #[test]
    fn encode_bounded_keeps_the_largest_ranges_that_fit(ranges in ranges(), ecn in ecn(), max_len in 0..300usize) {
        let mut buf = Vec::new();
        let written = Ack::encode_bounded(ranges.iter().cloned(), 5, ecn, max_len, &mut buf);
        prop_assert!(buf.len() <= max_len);
        if written == 0 {
            prop_assert!(buf.is_empty());
        } else {
            let ack = decode(&buf).unwrap();
            prop_assert!(ack.ranges().eq(ranges[..written].iter().cloned()));
        }
        if written < ranges.len() {
            let mut longer = Vec::new();
            Ack::encode(ranges[..=written].iter().cloned(), 5, ecn, &mut longer);
            prop_assert!(longer.len() > max_len, "one range more would fit");
        }
    }

    #[test]
    fn path_ack_differs_from_ack_only_in_type_and_path_id(
        ranges in ranges(),
        ecn in ecn(),
        path_id in any::<u32>().prop_map(PathId),
        max_len in 0..300usize,
    ) {
        let (mut ack, mut path_ack) = (Vec::new(), Vec::new());
        let path_len = varint::size(path_id.into());
        let written = PathAck::encode_bounded(
            path_id, ranges.iter().cloned(), 5, ecn, max_len + path_len, &mut path_ack,
        );
        let expected = Ack::encode_bounded(ranges.iter().cloned(), 5, ecn, max_len, &mut ack);
        prop_assert_eq!(written, expected);
        let Some((&frame_type, body)) = ack.split_first() else {
            prop_assert!(path_ack.is_empty());
            return Ok(());
        };
        prop_assert_eq!(path_ack[0], frame_type + 0x3c);
        prop_assert_eq!(&path_ack[1 + path_len..], body);
        let Some(Ok(Frame::PathAck(frame))) = Frames::new(&path_ack).next() else {
            panic!("a PATH_ACK");
        };
        prop_assert_eq!(frame.path_id, path_id);
        prop_assert_eq!(frame.ack, decode(&ack).unwrap());
    }

    #[test]
    fn arbitrary_bytes_decode_to_valid_ranges_or_an_error(bytes in proptest::collection::vec(0..=255u8, 0..100)) {
        for frame_type in [0x02, 0x03] {
            let bytes = [&[frame_type], &bytes[..]].concat();
            if let Some(Ok(Frame::Ack(ack))) = Frames::new(&bytes).next() {
                let ranges: Vec<_> = ack.ranges().collect();
                prop_assert_eq!(*ranges[0].end(), ack.largest);
                for pair in ranges.windows(2) {
                    prop_assert!(pair[1].end() + 1 < *pair[0].start());
                }
            }
        }
    }
}
