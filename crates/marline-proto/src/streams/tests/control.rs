//! Control frames: their scheduling, and how they fill packets.

use super::*;
use frame::Frame;

/// An end with every kind of control frame due.
fn everything_due() -> Streams {
    let mut client = streams(Side::Client);
    // 3000 bytes are the connection's limit.
    let unis: Vec<_> = (0..3).filter_map(|_| client.open(Dir::Uni)).collect();
    for &id in &unis[..2] {
        client.write(id, &[1; 1000]).expect("room");
        let segment = client.take_segment(id, 1000).expect("ready");
        client.on_segment_acked(&segment);
    }
    let [blocked, reset, stopped, read] = [(); 4].map(|()| client.open(Dir::Bi).expect("limit"));
    client.write(blocked, &[1; 1000]).expect("room");
    assert!(client.take_segment(blocked, 1000).is_some());
    assert_eq!(client.write(blocked, b"x"), Err(WriteError::Blocked));
    client.write(unis[2], b"x").expect("room");
    assert_eq!(client.open(Dir::Bi), None);
    client.reset(reset, 1).expect("open");
    client.stop(stopped, 2).expect("open");
    let bytes = data(read, 0, &[1; 1000], false);
    client.on_stream(&bytes).expect("allowed");
    assert!(client.read(read, 500, || NOW).is_ok());
    for index in 0..2 {
        let id = StreamId::new(Side::Server, Dir::Uni, index);
        let frame = frame::ResetStream {
            id,
            error_code: 1,
            final_size: 1000,
        };
        client.on_reset_stream(&frame).expect("allowed");
        assert_eq!(client.read(id, 1, || NOW), Err(ReadError::Reset(1)));
    }
    client
}

fn size(frame: &Frame<'_>) -> usize {
    match frame {
        Frame::MaxData(frame) => frame.size(),
        Frame::DataBlocked(frame) => frame.size(),
        Frame::MaxStreams(frame) => frame.size(),
        Frame::StreamsBlocked(frame) => frame.size(),
        Frame::ResetStream(frame) => frame.size(),
        Frame::StopSending(frame) => frame.size(),
        Frame::MaxStreamData(frame) => frame.size(),
        Frame::StreamDataBlocked(frame) => frame.size(),
        other => panic!("{other:?} is no control frame of streams"),
    }
}

fn is_of_connection(frame: &Frame<'_>) -> bool {
    matches!(
        frame,
        Frame::MaxData(_) | Frame::DataBlocked(_) | Frame::MaxStreams(_) | Frame::StreamsBlocked(_)
    )
}

/// Writes frames after `before` bytes, up to `limit` bytes in all.
fn write(streams: &mut Streams, before: usize, limit: usize) -> Vec<Frame<'static>> {
    let mut buf = vec![0; before];
    let mut tokens = 0;
    streams.write_control_frames(&mut buf, limit, &mut |_| tokens += 1);
    assert!(buf.len() <= limit.max(before));
    let frames: Result<Vec<_>, _> = frame::Frames::new(buf.split_off(before).leak()).collect();
    let frames = frames.expect("well-formed frames");
    assert_eq!(frames.len(), tokens);
    frames
}

/// Connection-level frames come first, then those of streams, each as long as they fit.
#[test]
fn control_frames_fill_a_packet_to_the_last_byte() {
    const BEFORE: usize = 5;
    let all = write(&mut everything_due(), 0, 1200);
    assert_eq!(all.len(), 8, "one of each kind: {all:?}");
    let total: usize = all.iter().map(size).sum();
    for room in 0..=total {
        let mut room_left = room;
        let mut expected = Vec::new();
        for of_connection in [true, false] {
            let group = all.iter().filter(|f| is_of_connection(f) == of_connection);
            for frame in group {
                let Some(left) = room_left.checked_sub(size(frame)) else {
                    break;
                };
                room_left = left;
                expected.push(*frame);
            }
        }
        let mut streams = everything_due();
        let first = write(&mut streams, BEFORE, BEFORE + room);
        assert_eq!(first, expected, "{room} bytes");
        assert_eq!(streams.has_control_frames(), first.len() < all.len());
        let rest = write(&mut streams, BEFORE, 1200);
        assert!(all.iter().all(|f| first.contains(f) != rest.contains(f)));
        assert!(!streams.has_control_frames());
    }
}

#[test]
fn lost_limits_are_due_again_unless_they_are_outdated() {
    let mut server = streams(Side::Server);
    let lose = |server: &mut Streams, index| {
        let id = StreamId::new(Side::Client, Dir::Uni, index);
        let frame = frame::ResetStream {
            id,
            error_code: 1,
            final_size: 1000,
        };
        server.on_reset_stream(&frame).expect("allowed");
        assert_eq!(server.read(id, 1, || NOW), Err(ReadError::Reset(1)));
    };
    lose(&mut server, 0);
    lose(&mut server, 1);
    let first = control_frames(&mut server);
    let max_data = frame::MaxData { maximum: 5000 };
    let max_streams = frame::MaxStreams {
        dir: Dir::Uni,
        maximum: 5,
    };
    let expected = [Frame::MaxData(max_data), Frame::MaxStreams(max_streams)];
    assert_eq!(first.frames, expected);
    for (token, frame) in first.tokens.iter().zip(expected) {
        server.on_token_lost(token);
        assert_eq!(control_frames(&mut server).frames, [frame]);
    }
    lose(&mut server, 2);
    lose(&mut server, 3);
    let second = control_frames(&mut server);
    assert_eq!(second.frames.len(), 2);
    first.tokens.iter().for_each(|t| server.on_token_lost(t));
    assert!(!server.has_control_frames(), "{:?} is newer", second.frames);
    // Due frames stay due after losses.
    second.tokens.iter().for_each(|t| server.on_token_lost(t));
    first.tokens.iter().for_each(|t| server.on_token_lost(t));
    assert_eq!(control_frames(&mut server).frames, second.frames);
}

/// RFC 9000, section 3.3: a receiver stops sending MAX_STREAM_DATA once it knows the final size.
#[test]
fn credit_for_a_stream_is_due_until_its_end_is_known() {
    let mut server = streams(Side::Server);
    let id = client_bidi(0);
    let receive = |server: &mut Streams, offset, len: usize, fin| {
        let bytes = vec![0; len];
        let frame = data(id, offset, &bytes, fin);
        server.on_stream(&frame).expect("allowed");
    };
    receive(&mut server, 0, 900, false);
    assert!(server.read(id, 500, || NOW).is_ok());
    assert!(server.has_control_frames());
    receive(&mut server, 900, 50, false);
    let DueControlFrames { frames, tokens } = control_frames(&mut server);
    assert_eq!(
        frames,
        [Frame::MaxStreamData(frame::MaxStreamData {
            id,
            maximum: 1500
        })]
    );
    server.on_token_lost(&tokens[0]);
    assert!(server.has_control_frames());
    receive(&mut server, 950, 550, true);
    assert!(!server.has_control_frames(), "its size is known");
    server.on_token_lost(&tokens[0]);
    assert!(!server.has_control_frames());
    assert!(server.read(id, 900, || NOW).is_ok());
    let connection = control_frames(&mut server).frames;
    assert!(connection.iter().all(is_of_connection), "{connection:?}");
}

#[test]
fn credit_for_a_stopped_stream_is_not_due_again() {
    let mut server = streams(Side::Server);
    let id = client_bidi(0);
    let bytes = data(id, 0, &[0; 900], false);
    server.on_stream(&bytes).expect("allowed");
    assert!(server.read(id, 500, || NOW).is_ok());
    let DueControlFrames { tokens, .. } = control_frames(&mut server);
    server.stop(id, 1).expect("open");
    control_frames(&mut server);
    server.on_token_lost(&tokens[0]);
    assert!(!server.has_control_frames());
}

/// RFC 9000, section 4.1: the sender reports each limit that blocks it once.
#[test]
fn blocked_connection_reports_its_limit_once() {
    let mut client = streams(Side::Client);
    let ids = [(); 4].map(|()| client.open(Dir::Bi).expect("within the limit"));
    for id in &ids[..3] {
        client.write(*id, &[1; 1000]).expect("room");
        let segment = client.take_segment(*id, 1000).expect("ready");
        client.on_segment_acked(&segment);
    }
    assert!(!client.has_control_frames(), "all is sent");
    client.write(ids[3], b"x").expect("room");
    assert!(client.has_control_frames());
    let DueControlFrames { frames, tokens } = control_frames(&mut client);
    let blocked = frame::DataBlocked { limit: 3000 };
    assert_eq!(frames, [Frame::DataBlocked(blocked)]);
    client.write(ids[3], b"x").expect("room");
    assert!(!client.has_control_frames());

    let more = frame::MaxData { maximum: 3002 };
    client.on_max_data(&more).expect("allowed");
    assert!(client.take_segment(ids[3], 100).is_some());
    client.on_token_lost(&tokens[0]);
    assert!(
        !client.has_control_frames(),
        "another limit, and nothing waits"
    );
}

/// RFC 9000, section 19.14: the frame is outdated when the peer permits more.
#[test]
fn streams_blocked_is_dropped_when_more_streams_are_permitted() {
    let mut client = streams(Side::Client);
    while client.open(Dir::Uni).is_some() {}
    let permit = |client: &mut Streams, maximum| {
        let dir = Dir::Uni;
        let frame = frame::MaxStreams { dir, maximum };
        client.on_max_streams(&frame).expect("allowed");
    };
    permit(&mut client, 3);
    assert!(client.has_control_frames(), "the limit is the same");
    permit(&mut client, 4);
    assert!(!client.has_control_frames());
}

/// RFC 9000, section 19.13.
#[test]
fn stream_data_blocked_is_dropped_when_more_bytes_are_permitted() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Bi).expect("within the limit");
    client.write(id, &[1; 1000]).expect("room");
    client.take_segment(id, 1000).expect("ready");
    assert_eq!(client.write(id, b"x"), Err(WriteError::Blocked));
    for (maximum, due) in [(1000, true), (1001, false)] {
        let frame = frame::MaxStreamData { id, maximum };
        client.on_max_stream_data(&frame).expect("allowed");
        assert_eq!(client.has_control_frames(), due);
    }
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
}

/// RFC 9000, section 4.1: 0-RTT that the server rejected was never sent.
#[test]
fn frames_that_were_due_in_rejected_zero_rtt_wait_for_permission() {
    let mut client = streams(Side::Client);
    let [reset, stopped, open] = [(); 3].map(|()| client.open(Dir::Bi).expect("limit"));
    client.reset(reset, 1).expect("open");
    client.stop(stopped, 2).expect("open");
    client.write(open, b"abc").expect("room");
    client.on_zero_rtt_rejected();
    assert!(!client.has_control_frames());
    let mut smaller = limits(&config(Side::Server));
    smaller.max_streams_bidi = 0;
    client.set_peer_limits(&smaller).expect("any limit");
    assert!(!client.has_control_frames());
    let permit = |client: &mut Streams, maximum| {
        let dir = Dir::Bi;
        let frame = frame::MaxStreams { dir, maximum };
        client.on_max_streams(&frame).expect("allowed");
        control_frames(client).frames.len()
    };
    assert_eq!(permit(&mut client, 1), 1, "RESET_STREAM");
    assert_eq!(permit(&mut client, 2), 1, "STOP_SENDING");
    let dir = Dir::Bi;
    let frame = frame::MaxStreams { dir, maximum: 3 };
    client.on_max_streams(&frame).expect("allowed");
    assert!(!client.has_control_frames(), "a stream that is only open");
    let segment = client.take_segment(open, 100).expect("ready");
    assert_eq!((segment.range(), segment.fin), (0..3, false));
}
