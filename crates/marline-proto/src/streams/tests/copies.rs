//! Bytes in flight on two paths.

use super::*;

/// A stream of `data`, finished, and its only segment.
struct Sent {
    client: Streams,
    id: StreamId,
    segment: Segment,
}

fn sent(data: &[u8], fin: bool) -> Sent {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, data).expect("room");
    if fin {
        client.finish(id).expect("open");
    }
    let segment = client.take_segment(id, 100).expect("ready");
    Sent {
        client,
        id,
        segment,
    }
}

/// The bytes of a segment, as its frame carries them.
fn written(client: &mut Streams, segment: &Segment) -> Option<frame::Frame<'static>> {
    let mut buf = Vec::new();
    client.write_segment(segment, true, &mut buf)?;
    let mut frames = frame::Frames::new(buf.leak());
    frames.next()?.ok()
}

#[test]
fn segment_in_flight_is_copied_once_with_its_end() {
    let Sent {
        mut client,
        id,
        segment,
    } = sent(b"abcdef", true);
    assert_eq!(client.in_flight_once(&segment), Some(segment));
    assert_eq!(client.take_copy(&segment), Some(segment));
    let expected = frame::Frame::Stream(data(id, 0, b"abcdef", true));
    assert_eq!(written(&mut client, &segment), Some(expected));
    assert_eq!(client.in_flight_once(&segment), None);
    assert_eq!(client.take_copy(&segment), None);
}

#[test]
fn one_acknowledgment_of_two_copies_is_enough() {
    let Sent {
        mut client,
        id,
        segment,
    } = sent(b"abcdef", true);
    let copy = client.take_copy(&segment).expect("in flight once");
    client.on_segment_lost(&segment);
    assert_eq!(client.take_segment(id, 100), None, "the copy is in flight");
    client.on_segment_acked(&copy);
    assert!(events(&mut client).contains(&StreamEvent::Finished(id)));
    assert!(client.is_idle());
}

#[test]
fn both_copies_must_be_lost_before_bytes_and_end_are_due_again() {
    let Sent {
        mut client,
        id,
        segment,
    } = sent(b"abcdef", true);
    let copy = client.take_copy(&segment).expect("in flight once");
    client.on_segment_lost(&copy);
    assert_eq!(client.take_segment(id, 100), None);
    assert_eq!(client.in_flight_once(&segment), Some(segment));
    client.on_segment_lost(&segment);
    assert_eq!(client.take_segment(id, 100), Some(segment));
}

#[test]
fn end_alone_is_copied_and_lost_like_bytes() {
    let Sent { mut client, id, .. } = sent(b"abc", false);
    client.finish(id).expect("open");
    let end = client.take_end(100).expect("the end is due");
    let expected = frame::Frame::Stream(data(id, 3, b"", true));
    assert_eq!(written(&mut client, &end), Some(expected));
    assert_eq!(client.take_copy(&end), Some(end));
    assert_eq!(client.take_copy(&end), None);
    client.on_segment_lost(&end);
    assert_eq!(client.take_end(100), None);
    client.on_segment_lost(&end);
    assert_eq!(client.take_end(100), Some(end));
}

/// The FIN is sent with the last part only.
#[test]
fn piece_before_an_acknowledged_one_is_copied_without_the_end() {
    let Sent {
        mut client,
        id,
        segment,
    } = sent(b"abcdef", true);
    let middle = Segment {
        offset: 2,
        len: 2,
        fin: false,
        ..segment
    };
    client.on_segment_acked(&middle);
    let front = client.take_copy(&segment).expect("in flight once");
    assert_eq!((front.range(), front.fin), (0..2, false));
    client.on_segment_lost(&front);
    assert_eq!(
        client.take_segment(id, 100),
        None,
        "it is in flight once more"
    );
}

/// The parts of one packet's segment in order; the FIN is sent with the last.
#[test]
fn all_pieces_between_acknowledged_ones_are_copied() {
    let Sent {
        mut client,
        segment,
        ..
    } = sent(b"abcdef", true);
    let middle = Segment {
        offset: 2,
        len: 2,
        fin: false,
        ..segment
    };
    client.on_segment_acked(&middle);
    let copies: Vec<_> = std::iter::from_fn(|| client.take_copy(&segment)).collect();
    let pieces: Vec<_> = copies.iter().map(|copy| (copy.range(), copy.fin)).collect();
    assert_eq!(pieces, [(0..2, false), (4..6, true)]);
}

/// The loss of an earlier part does not affect the FIN, whether it is in flight once or twice.
#[test]
fn loss_of_other_bytes_leaves_the_end_in_flight() {
    for copied in [false, true] {
        let Sent { mut client, id, .. } = sent(b"abc", false);
        client.write(id, b"def").expect("room");
        client.finish(id).expect("open");
        let last = client.take_segment(id, 100).expect("ready");
        assert!(last.fin);
        if copied {
            assert_eq!(client.take_copy(&last), Some(last));
        }
        let first = Segment {
            offset: 0,
            fin: false,
            ..last
        };
        client.on_segment_lost(&first);
        assert_eq!(client.take_segment(id, 100), Some(first));
        assert_eq!(client.take_segment(id, 100), None);
        assert_eq!(client.in_flight_once(&last).is_some(), !copied);
        if copied {
            client.on_segment_lost(&last);
            assert_eq!(client.take_segment(id, 100), None);
        }
        client.on_segment_lost(&last);
        assert_eq!(client.take_segment(id, 100), Some(last));
    }
}

#[test]
fn bytes_that_a_copy_delivered_are_not_written_again() {
    let Sent {
        mut client,
        id,
        segment,
    } = sent(b"abcdef", false);
    let front = Segment { len: 4, ..segment };
    let copy = client.take_copy(&front).expect("in flight once");
    client.on_segment_acked(&copy);
    let mut buf = Vec::new();
    let rest = client
        .write_segment(&segment, true, &mut buf)
        .expect("held");
    assert_eq!((rest.range(), rest.fin), (4..6, false));
    let expected = frame::Frame::Stream(data(id, 4, b"ef", false));
    assert_eq!(frame::Frames::new(&buf).next(), Some(Ok(expected)));
    assert_eq!(client.write_segment(&front, true, &mut buf), None);
}

#[test]
fn nothing_of_a_reset_stream_is_copied() {
    let Sent {
        mut client,
        id,
        segment,
    } = sent(b"abcdef", true);
    client.reset(id, 1).expect("open");
    assert_eq!(client.in_flight_once(&segment), None);
    assert_eq!(client.take_copy(&segment), None);
}
