//! The state diagrams, and errors of frames that are invalid in a state.

use super::*;
use bytes::Bytes;

#[test]
fn a_stream_of_one_frame_is_sent_and_acknowledged() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Bi).expect("within the limit");
    assert_eq!(client.write(id, b"request"), Ok(7));
    client.finish(id).expect("still open");
    assert_eq!(client.write(id, b"more"), Err(WriteError::Closed));
    assert_eq!(ready_changes(&mut client), [change(id, true)]);

    let segment = client.take_segment(id, 100).expect("it is ready");
    assert_eq!(ready_changes(&mut client), [change(id, false)]);
    let mut buf = Vec::new();
    assert_eq!(
        client.write_segment(&segment, true, &mut buf),
        Some(segment)
    );
    let expected = frame::Frame::Stream(data(id, 0, b"request", true));
    assert_eq!(frame::Frames::new(&buf).next(), Some(Ok(expected)));

    client.on_segment_acked(&segment);
    assert_eq!(events(&mut client), [StreamEvent::Finished(id)]);
    assert_eq!(client.write_segment(&segment, true, &mut buf), None);
}

#[test]
fn frames_are_cut_to_the_room_in_the_packet() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, &[7; 500]).expect("room");
    for room in [2, 3, 63, 64, 65, 300] {
        let Some(segment) = client.take_frame(id, room) else {
            assert_eq!(room, 2);
            continue;
        };
        let mut buf = Vec::new();
        client.write_segment(&segment, false, &mut buf);
        assert_eq!(buf.len(), room);
    }
}

#[test]
fn a_segment_is_split_for_a_smaller_packet() {
    let segment = Segment {
        id: client_bidi(0),
        offset: 100,
        len: 50,
        fin: true,
    };
    assert_eq!(segment.frame_size(false), 54);
    for room in [3, 4, 54] {
        assert_eq!({ segment }.split_front(room), None);
    }
    let mut rest = segment;
    let front = rest.split_front(53).expect("49 bytes fit");
    assert_eq!(
        (front.range(), front.fin, front.frame_size(false)),
        (100..149, false, 53)
    );
    assert_eq!((rest.range(), rest.fin), (149..150, true));
    let mut rest = segment;
    let front = rest.split_front(14).expect("10 bytes fit");
    assert_eq!((front.range(), rest.range()), (100..110, 110..150));
}

#[test]
fn a_lost_end_is_sent_again() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    let data = client.take_segment(id, 100).expect("it is ready");
    client.finish(id).expect("still open");
    let fin = client.take_end(100).expect("the end is due");
    assert_eq!((fin.offset, fin.len, fin.fin), (3, 0, true));
    client.on_segment_acked(&data);
    assert_eq!(client.take_end(100), None);
    client.on_segment_lost(&fin);
    assert_eq!(client.take_end(100), Some(fin), "the end is due again");
    client.on_segment_acked(&fin);
    assert!(client.is_idle());
}

#[test]
fn frames_for_the_wrong_part_are_errors() {
    let mut client = streams(Side::Client);
    let unopened = client_bidi(0);
    let own_uni = client.open(Dir::Uni).expect("within the limit");
    let peer_uni = StreamId::new(Side::Server, Dir::Uni, 0);
    let state = Some(ErrorCode::STREAM_STATE_ERROR);
    assert_eq!(
        code(client.on_stream(&data(own_uni, 0, b"x", false))),
        state
    );
    assert_eq!(
        code(client.on_stream(&data(unopened, 0, b"x", false))),
        state
    );
    for id in [unopened, peer_uni] {
        let frame = frame::MaxStreamData { id, maximum: 9 };
        assert_eq!(code(client.on_max_stream_data(&frame)), state);
        let frame = frame::StopSending { id, error_code: 9 };
        assert_eq!(code(client.on_stop_sending(&frame)), state);
    }
    for id in [unopened, own_uni] {
        let frame = frame::StreamDataBlocked { id, limit: 9 };
        assert_eq!(code(client.on_stream_data_blocked(&frame)), state);
        let (error_code, final_size) = (0, 0);
        let frame = frame::ResetStream {
            id,
            error_code,
            final_size,
        };
        assert_eq!(code(client.on_reset_stream(&frame)), state);
    }
}

#[test]
fn a_changed_final_size_is_an_error() {
    let size = Some(ErrorCode::FINAL_SIZE_ERROR);
    let id = client_bidi(0);
    let fresh = || {
        let mut server = streams(Side::Server);
        assert_eq!(server.on_stream(&data(id, 5, b"end", true)), Ok(()));
        server
    };
    assert_eq!(code(fresh().on_stream(&data(id, 5, b"ends", false))), size);
    assert_eq!(code(fresh().on_stream(&data(id, 5, b"en", true))), size);
    assert_eq!(fresh().on_stream(&data(id, 5, b"end", true)), Ok(()));
    for (final_size, expected) in [(7, size), (8, None), (9, size)] {
        let frame = frame::ResetStream {
            id,
            error_code: 1,
            final_size,
        };
        assert_eq!(code(fresh().on_reset_stream(&frame)), expected);
    }

    let mut server = streams(Side::Server);
    assert_eq!(server.on_stream(&data(id, 5, b"end", false)), Ok(()));
    assert_eq!(code(server.on_stream(&data(id, 2, b"e", true))), size);
}

#[test]
fn receiving_states_follow_the_diagram() {
    let mut server = streams(Side::Server);
    let id = client_bidi(0);
    let state = |server: &Streams| server.table[&id].recv.as_ref().map(RecvPart::state);
    server
        .on_stream(&data(id, 3, b"def", true))
        .expect("allowed");
    assert_eq!(state(&server), Some(recv::RecvState::SizeKnown));
    assert_eq!(events(&mut server), [StreamEvent::Opened(Dir::Bi)]);
    assert_eq!(server.read(id, 9, || NOW), Err(ReadError::Blocked));
    server
        .on_stream(&data(id, 0, b"abc", false))
        .expect("allowed");
    assert_eq!(state(&server), Some(recv::RecvState::DataRecvd));
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
    let late_reset = frame::ResetStream {
        id,
        error_code: 1,
        final_size: 6,
    };
    assert_eq!(server.on_reset_stream(&late_reset), Ok(()));
    assert_eq!(
        server.read(id, 9, || NOW),
        Ok(Some(Bytes::from_static(b"abcdef")))
    );
    assert_eq!(server.read(id, 9, || NOW), Ok(None));
    assert_eq!(state(&server), None);
    assert_eq!(server.read(id, 9, || NOW), Err(ReadError::Closed));
}

#[test]
fn a_reset_interrupts_reading() {
    let mut server = streams(Side::Server);
    let id = client_bidi(0);
    server
        .on_stream(&data(id, 0, b"abc", false))
        .expect("allowed");
    let reset = frame::ResetStream {
        id,
        error_code: 42,
        final_size: 10,
    };
    server.on_reset_stream(&reset).expect("allowed");
    assert_eq!(server.stats().bytes_received, 10);
    assert_eq!(server.read(id, 9, || NOW), Err(ReadError::Reset(42)));
    assert_eq!(server.read(id, 9, || NOW), Err(ReadError::Closed));
    assert_eq!(server.on_stream(&data(id, 0, b"abc", false)), Ok(()));
}

#[test]
fn chunks_are_written_and_sent_like_copies() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    let mut chunk = Bytes::from(vec![7; 1200]);
    assert_eq!(client.write_chunk(id, &mut chunk), Ok(1000));
    assert_eq!(chunk.len(), 200, "the rest stays with the application");
    assert_eq!(client.write_chunk(id, &mut chunk), Err(WriteError::Blocked));
    let segment = client.take_segment(id, 1000).expect("ready");
    let mut buf = Vec::new();
    client.write_segment(&segment, true, &mut buf);
    let expected = frame::Frame::Stream(data(id, 0, &[7; 1000], false));
    assert_eq!(frame::Frames::new(&buf).next(), Some(Ok(expected)));
}

#[test]
fn scheduler_learns_the_priority_of_a_ready_stream() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    let priority = Priority::new(1, true);
    client.set_priority(id, priority);
    client.write(id, b"abc").expect("room");
    let ready = Some(priority);
    assert_eq!(ready_changes(&mut client), [ReadyChange { id, ready }]);
}

#[test]
fn path_scheduler_sees_what_a_stream_has_to_send_and_its_latest_path() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, &[1; 500]).expect("room");
    let segment = client.take_segment(id, 100).expect("ready");
    client.take_segment(id, 100).expect("ready");
    client.on_segment_lost(&segment);
    client.set_path(id, marline_wire::PathId(3));
    let view = client.view(id).expect("it sends");
    assert_eq!((view.id, view.remaining), (id, 400));
    assert_eq!(view.previous, Some(marline_wire::PathId(3)));
    assert!(client.view(client_bidi(0)).is_none());
}

#[test]
fn stream_is_all_sent_once_its_last_byte_has_left() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    assert!(!client.is_all_sent(id));
    client.take_segment(id, 2).expect("ready");
    assert!(!client.is_all_sent(id));
    client.finish(id).expect("open");
    assert!(!client.is_all_sent(id));
    let last = client.take_segment(id, 2).expect("ready");
    assert!(client.is_all_sent(id));
    client.on_segment_lost(&last);
    assert!(client.is_all_sent(id), "once is enough");
}

#[test]
fn nothing_is_taken_of_a_stream_without_data_or_credit() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    assert_eq!(client.take_segment(id, 100), None);
    client.write(id, &[1; 1000]).expect("room");
    client.finish(id).expect("open");
    assert_eq!(client.take_segment(id, 0), None);
    assert_eq!(client.take_segment(id, 999).map(|s| s.fin), Some(false));
    assert_eq!(client.take_segment(id, 0), None, "the end comes last");
    assert_eq!(client.take_segment(id, 100).map(|s| s.fin), Some(true));
    assert_eq!(client.take_segment(id, 100), None);
}

#[test]
fn segment_of_an_abandoned_path_is_due_again() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    client.finish(id).expect("open");
    let segment = client.take_segment(id, 100).expect("ready");
    client.return_segment(&segment);
    assert_eq!(client.take_segment(id, 100), Some(segment));
}

#[test]
fn an_acknowledged_end_is_not_sent_again() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    let first = client.take_segment(id, 100).expect("ready");
    client.finish(id).expect("open");
    let end = client.take_end(100).expect("the end is due");
    client.on_segment_acked(&end);
    client.on_segment_lost(&first);
    let again = client.take_segment(id, 100).expect("due again");
    client.on_segment_lost(&again);
    // The loss was spurious.
    client.on_segment_acked(&first);
    assert_eq!(events(&mut client), [StreamEvent::Finished(id)]);
}
