//! The FIN of a stream: with the data before it if that is unsent, and alone otherwise.

use super::*;

/// A stream that ends with `taken`, which waits for its packet.
struct Assigned {
    client: Streams,
    id: StreamId,
    taken: Segment,
}

fn assigned() -> Assigned {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    let taken = client.take_frame(id, 100).expect("it is ready");
    assert!(!taken.fin);
    ready_changes(&mut client);
    client.finish(id).expect("open");
    Assigned { client, id, taken }
}

fn write(client: &mut Streams, segment: &Segment) -> Option<Segment> {
    client.write_segment(segment, true, &mut Vec::new())
}

#[test]
fn an_end_joins_a_segment_that_waits_for_its_packet() {
    let Assigned {
        mut client,
        id,
        taken,
    } = assigned();
    assert!(!client.has_ends(), "nothing is to be sent alone");
    assert!(client.is_all_sent(id));
    assert_eq!(ready_changes(&mut client), [change(id, false)]);
    let written = write(&mut client, &taken).expect("held");
    assert_eq!((written.range(), written.fin), (0..3, true));
    client.on_segment_acked(&written);
    assert_eq!(events(&mut client), [StreamEvent::Finished(id)]);
    assert!(client.is_idle());
}

#[test]
fn an_end_that_joined_a_returned_segment_is_due_again_with_it() {
    let Assigned {
        mut client,
        id,
        taken,
    } = assigned();
    client.return_segment(&taken);
    assert!(!client.has_ends(), "it goes with the data");
    let again = client.take_frame(id, 100).expect("due again");
    assert_eq!((again.range(), again.fin), (0..3, true));
    assert_eq!(client.take_frame(id, 100), None);
}

#[test]
fn an_end_that_joined_a_lost_segment_is_sent_again_with_it() {
    let Assigned {
        mut client,
        id,
        taken,
    } = assigned();
    let written = write(&mut client, &taken).expect("held");
    client.on_segment_lost(&written);
    assert!(!client.has_ends(), "it goes with the data");
    assert_eq!(client.take_frame(id, 100), Some(written));
}

#[test]
fn both_copies_of_a_waiting_segment_carry_the_end() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    let taken = client.take_frame(id, 100).expect("it is ready");
    let copy = client.take_copy(&taken).expect("in flight once");
    client.finish(id).expect("open");
    for segment in [taken, copy] {
        let written = write(&mut client, &segment).expect("held");
        assert!(written.fin);
    }
    let copy = Segment { fin: true, ..copy };
    client.on_segment_lost(&copy);
    assert!(!client.has_ends(), "the other carries it");
    client.on_segment_acked(&copy);
    assert!(client.is_idle());
}

#[test]
fn an_end_after_its_data_is_sent_alone_and_is_no_turn_of_the_stream() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    let taken = client.take_frame(id, 100).expect("it is ready");
    write(&mut client, &taken).expect("held");
    ready_changes(&mut client);
    client.finish(id).expect("open");
    assert!(client.is_all_sent(id));
    assert_eq!(ready_changes(&mut client), [change(id, false)]);
    assert_eq!(client.take_frame(id, 100), None, "it has no data");
    assert!(client.has_ends());
    assert_eq!(client.take_end(3), None, "no room");
    let end = client.take_end(10).expect("due");
    assert_eq!((end.range(), end.fin), (3..3, true));
    assert!(!client.has_ends());
    assert_eq!(write(&mut client, &end), Some(end));
    client.on_segment_lost(&end);
    assert_eq!(client.take_end(10), Some(end), "due again");
}

#[test]
fn a_stream_without_data_is_its_end() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.finish(id).expect("open");
    let end = client.take_end(10).expect("due");
    assert_eq!((end.range(), end.fin), (0..0, true));
    client.on_segment_acked(&end);
    assert!(client.is_idle());
}

#[test]
fn the_end_of_a_reset_stream_is_not_sent() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.finish(id).expect("open");
    client.reset(id, 1).expect("open");
    assert_eq!(client.take_end(10), None);
    assert!(!client.has_ends());
}
