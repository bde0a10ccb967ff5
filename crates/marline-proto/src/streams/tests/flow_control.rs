//! Limits on bytes, in both directions.

use super::*;
use std::time::Duration;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

#[test]
fn limits_are_exact_to_the_byte() {
    let flow = Some(ErrorCode::FLOW_CONTROL_ERROR);
    let mut server = streams(Side::Server);
    let id = client_bidi(0);
    assert_eq!(server.on_stream(&data(id, 999, b"x", false)), Ok(()));
    assert_eq!(code(server.on_stream(&data(id, 1000, b"x", false))), flow);
    assert_eq!(server.on_stream(&data(id, 1000, b"", true)), Ok(()));

    assert_eq!(
        server.on_stream(&data(client_bidi(1), 999, b"x", false)),
        Ok(())
    );
    assert_eq!(
        server.on_stream(&data(client_bidi(2), 998, b"x", false)),
        Ok(())
    );
    assert_eq!(
        server.on_stream(&data(client_bidi(3), 0, b"x", false)),
        Ok(())
    );
    assert_eq!(
        code(server.on_stream(&data(client_bidi(3), 1, b"x", false))),
        flow
    );
    let (error_code, final_size) = (0, 2);
    let reset = frame::ResetStream {
        id: client_bidi(3),
        error_code,
        final_size,
    };
    assert_eq!(code(server.on_reset_stream(&reset)), flow);
}

#[test]
fn reading_returns_credit() {
    let mut server = streams(Side::Server);
    let id = client_bidi(0);
    server
        .on_stream(&data(id, 0, &[0; 1000], false))
        .expect("allowed");
    assert!(server.read(id, 499, || NOW).is_ok());
    assert!(!server.has_control_frames());
    assert!(server.read(id, 1, || NOW).is_ok());
    let DueControlFrames { frames, tokens } = control_frames(&mut server);
    let more = frame::MaxStreamData { id, maximum: 1500 };
    assert_eq!(frames, [frame::Frame::MaxStreamData(more)]);

    assert!(server.read(id, 300, || NOW).is_ok());
    server.on_token_lost(&tokens[0]);
    let more = frame::MaxStreamData { id, maximum: 1800 };
    let frames = control_frames(&mut server).frames;
    assert_eq!(frames, [frame::Frame::MaxStreamData(more)]);
    server.on_token_lost(&tokens[0]);
    assert!(!server.has_control_frames());
}

#[test]
fn windows_grow_for_a_fast_reader() {
    let mut server = streams(Side::Server);
    server.set_rtt(Duration::from_millis(100));
    let id = client_bidi(0);
    let mut offset = 0;
    for millis in 0..400 {
        server.on_stream(&data(id, 0, b"", false)).expect("allowed");
        let recv = server.table[&id].recv.as_ref().expect("open");
        let end = recv.window.advertised();
        let bytes = vec![0; (end - offset) as usize];
        server
            .on_stream(&data(id, offset, &bytes, false))
            .expect("allowed");
        offset = end;
        while let Ok(Some(_)) = server.read(id, usize::MAX, || at(millis)) {}
        control_frames(&mut server);
    }
    let recv = server.table[&id].recv.as_ref().expect("open");
    assert_eq!(recv.window.size(), 4000);
    assert_eq!(server.window.size(), 12_000);
}

#[test]
fn writes_stop_at_the_streams_limit() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Bi).expect("within the limit");
    assert_eq!(client.write(id, &[1; 1500]), Ok(1000));
    assert_eq!(client.write(id, &[1; 500]), Err(WriteError::Blocked));
    assert!(!client.has_control_frames(), "there is data to send before");
    let segment = client.take_segment(id, 5000).expect("ready");
    assert_eq!(segment.len, 1000);
    let blocked = frame::StreamDataBlocked { id, limit: 1000 };
    let DueControlFrames { frames, tokens } = control_frames(&mut client);
    assert_eq!(frames, [frame::Frame::StreamDataBlocked(blocked)]);
    client.on_token_lost(&tokens[0]);
    assert!(client.has_control_frames());
    let more = frame::MaxStreamData { id, maximum: 1001 };
    client.on_max_stream_data(&more).expect("allowed");
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
    client.on_max_stream_data(&more).expect("allowed");
    assert_eq!(events(&mut client), []);
    assert_eq!(client.write(id, &[1; 500]), Ok(1));
}

#[test]
fn the_connections_limit_blocks_new_bytes_but_not_lost_ones() {
    let mut client = streams(Side::Client);
    let ids: Vec<_> = (0..4)
        .map(|_| client.open(Dir::Bi).expect("limit"))
        .collect();
    let mut sent = Vec::new();
    for &id in &ids[..3] {
        client.write(id, &[1; 1000]).expect("room");
        let segment = client.take_segment(id, 5000).expect("ready");
        client.on_segment_acked(&segment);
        sent.push(segment);
    }
    client.write(ids[3], b"x").expect("room");
    client.finish(ids[0]).expect("open");
    assert_eq!(ready_changes(&mut client), [change(ids[0], false)]);
    assert!(client.take_end(100).is_some(), "an end needs no credit");
    assert_eq!(client.take_segment(ids[3], 100), None);
    let blocked = frame::DataBlocked { limit: 3000 };
    let DueControlFrames { frames, tokens } = control_frames(&mut client);
    assert_eq!(frames, [frame::Frame::DataBlocked(blocked)]);
    client.on_token_lost(&tokens[0]);
    assert_eq!(control_frames(&mut client).frames, frames);

    client
        .on_max_data(&frame::MaxData { maximum: 3001 })
        .expect("allowed");
    client.on_token_lost(&tokens[0]);
    assert!(!client.has_control_frames());
    assert_eq!(ready_changes(&mut client), [change(ids[3], true)]);
    assert_eq!(client.take_segment(ids[3], 100).map(|s| s.len), Some(1));
    assert_eq!(ready_changes(&mut client), [change(ids[3], false)]);
}

#[test]
fn writers_that_wait_for_memory_are_notified() {
    let mut client = streams(Side::Client);
    let a = client.open(Dir::Bi).expect("within the limit");
    let b = client.open(Dir::Bi).expect("within the limit");
    let c = client.open(Dir::Bi).expect("within the limit");
    assert_eq!(client.write(a, &[1; 1000]), Ok(1000));
    assert_eq!(client.write(b, &[1; 1000]), Ok(1000));
    assert_eq!(client.write(c, b"x"), Err(WriteError::Blocked));
    assert_eq!(client.write(c, b"x"), Err(WriteError::Blocked));
    assert_eq!(client.waiting_writers.len(), 1, "it waits once");
    let small = client.take_segment(a, 200).expect("ready");
    let large = client.take_segment(a, 200).expect("ready");
    client.on_segment_acked(&small);
    assert_eq!(events(&mut client), []);
    client.on_segment_acked(&large);
    assert_eq!(events(&mut client), [StreamEvent::Writable(c)]);
    client.reset(b, 0).expect("open");
    assert_eq!(client.stats().bytes_held, 600);
}

#[test]
fn limits_below_those_remembered_for_zero_rtt_are_an_error() {
    let mut client = streams(Side::Client);
    let mut smaller = limits(&config(Side::Server));
    smaller.max_stream_data_uni -= 1;
    let error = client.set_peer_limits(&smaller);
    assert_eq!(code(error), Some(ErrorCode::PROTOCOL_VIOLATION));
    assert_eq!(
        client.set_peer_limits(&limits(&config(Side::Server))),
        Ok(())
    );
}

#[test]
fn rejected_zero_rtt_is_sent_again_within_the_new_limits() {
    let mut client = streams(Side::Client);
    let a = client.open(Dir::Bi).expect("within the limit");
    let b = client.open(Dir::Bi).expect("within the limit");
    let c = client.open(Dir::Bi).expect("within the limit");
    client.write(a, &[1; 1000]).expect("room");
    client.finish(a).expect("open");
    client.write(b, b"hello").expect("room");
    for id in [a, b] {
        client.take_segment(id, 600).expect("ready");
    }
    client.write(c, b"never mind").expect("room");
    client.take_segment(c, 600).expect("ready");
    client.reset(c, 7).expect("open");
    control_frames(&mut client);
    ready_changes(&mut client);

    client.on_zero_rtt_rejected();
    assert_eq!(client.take_segment(a, 600), None);
    let mut smaller = limits(&config(Side::Server));
    smaller.max_streams_bidi = 1;
    smaller.max_stream_data_bidi_remote = 300;
    assert_eq!(client.set_peer_limits(&smaller), Ok(()));
    assert_eq!(ready_changes(&mut client), [], "a was ready and is");
    let segment = client.take_segment(a, 600).expect("ready");
    assert_eq!((segment.offset, segment.len, segment.fin), (0, 300, false));
    assert_eq!(client.take_segment(b, 600), None);
    control_frames(&mut client);

    let more = frame::MaxStreams {
        dir: Dir::Bi,
        maximum: 3,
    };
    client.on_max_streams(&more).expect("allowed");
    assert_eq!(
        ready_changes(&mut client),
        [change(a, false), change(b, true)]
    );
    assert_eq!(client.take_segment(b, 600).map(|s| s.range()), Some(0..5));
    let reset = frame::ResetStream {
        id: c,
        error_code: 7,
        final_size: 0,
    };
    assert_eq!(
        control_frames(&mut client).frames,
        [frame::Frame::ResetStream(reset)]
    );
}

/// Free memory alone does not unblock a writer whose stream has no credit.
#[test]
fn writer_without_credit_waits_for_credit_once_there_is_memory() {
    let mut client = streams(Side::Client);
    let a = client.open(Dir::Bi).expect("within the limit");
    let b = client.open(Dir::Bi).expect("within the limit");
    for id in [a, b] {
        assert_eq!(client.write(id, &[1; 1000]), Ok(1000));
    }
    assert_eq!(client.write(a, b"x"), Err(WriteError::Blocked));
    let segment = client.take_segment(b, 1000).expect("ready");
    client.on_segment_acked(&segment);
    assert_eq!(events(&mut client), []);
    let more = frame::MaxStreamData {
        id: a,
        maximum: 1001,
    };
    client.on_max_stream_data(&more).expect("allowed");
    assert_eq!(events(&mut client), [StreamEvent::Writable(a)]);
}

/// RFC 9000, section 18.2: the initiator determines which limit applies to a stream.
#[test]
fn each_kind_of_stream_has_its_initial_limit() {
    let mut client = Streams::new(config(Side::Client));
    let limits = PeerLimits {
        max_stream_data_bidi_local: 100,
        max_stream_data_bidi_remote: 200,
        max_stream_data_uni: 300,
        ..limits(&config(Side::Server))
    };
    client.set_peer_limits(&limits).expect("the first limits");
    let remote = StreamId::new(Side::Server, Dir::Bi, 0);
    client
        .on_stream(&data(remote, 0, b"", false))
        .expect("allowed");
    let bidi = client.open(Dir::Bi).expect("within the limit");
    let uni = client.open(Dir::Uni).expect("within the limit");
    let written = [remote, bidi, uni].map(|id| client.write(id, &[1; 400]));
    assert_eq!(written, [Ok(100), Ok(200), Ok(300)]);
}

#[test]
fn connections_window_has_room_for_one_and_a_half_of_a_streams() {
    let mut server = streams(Side::Server);
    server.set_rtt(Duration::from_millis(100));
    let [slow, fast] = [0, 1].map(client_bidi);
    server
        .on_stream(&data(slow, 0, b"x", false))
        .expect("allowed");
    assert!(server.read(slow, 1, || at(0)).is_ok());
    let mut offset = 0;
    for (now, len) in [(1_000, 500), (1_010, 1_000)] {
        let bytes = vec![0; len];
        server
            .on_stream(&data(fast, offset, &bytes, false))
            .expect("allowed");
        offset += len as u64;
        while let Ok(Some(_)) = server.read(fast, len, || at(now)) {}
        control_frames(&mut server);
    }
    let recv = server.table[&fast].recv.as_ref().expect("open");
    assert_eq!(recv.window.size(), 4_000);
    assert_eq!(server.window.size(), 6_000);
}

#[test]
fn bytes_that_wait_for_earlier_ones_are_counted() {
    let mut server = streams(Side::Server);
    let [a, b] = [0, 1].map(client_bidi);
    let mut held = Vec::new();
    for (id, offset, len) in [(a, 5, 3), (b, 10, 2), (a, 9, 1), (a, 0, 5), (b, 0, 10)] {
        let bytes = vec![0; len];
        server
            .on_stream(&data(id, offset, &bytes, false))
            .expect("allowed");
        let of_streams = [a, b].map(|id| server.out_of_order_bytes_of(id));
        assert_eq!(server.out_of_order_bytes(), of_streams.iter().sum());
        held.push(of_streams);
    }
    assert_eq!(held, [[3, 0], [3, 2], [4, 2], [1, 2], [1, 0]]);
    assert_eq!(server.stats().out_of_order, OutOfOrder { bytes: 1, max: 6 });
}

#[test]
fn bytes_sent_again_are_counted_apart() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Bi).expect("within the limit");
    client.write(id, &[1; 500]).expect("room");
    let first = client.take_segment(id, 300).expect("ready");
    client.take_segment(id, 100).expect("ready");
    client.on_segment_lost(&first);
    client.take_segment(id, 200).expect("ready");
    let stats = client.stats();
    assert_eq!((stats.bytes_sent, stats.bytes_retransmitted), (400, 200));
}

#[test]
fn last_credit_of_the_connection_makes_other_streams_unready() {
    let mut client = streams(Side::Client);
    let ids = [(); 3].map(|()| client.open(Dir::Bi).expect("within the limit"));
    let smaller = frame::MaxStreamData {
        id: ids[0],
        maximum: 3_500,
    };
    client.on_max_stream_data(&smaller).expect("allowed");
    for _ in 0..2 {
        client.write(ids[0], &[1; 1_450]).expect("room");
        let segment = client.take_segment(ids[0], 1_450).expect("ready");
        client.on_segment_acked(&segment);
    }
    for id in &ids[1..] {
        client.write(*id, &[1; 100]).expect("room");
    }
    ready_changes(&mut client);
    client.take_segment(ids[1], 99).expect("ready");
    assert_eq!(ready_changes(&mut client), []);
    client.take_segment(ids[1], 1).expect("ready");
    let expected = [change(ids[1], false), change(ids[2], false)];
    assert_eq!(ready_changes(&mut client), expected);
}
