//! Ends of streams; no state of closed ones is kept.

use super::*;

#[test]
fn stop_sending_is_answered_with_a_reset() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, &[1; 600]).expect("room");
    let sent = client.take_segment(id, 200).expect("it is ready");
    let stop = frame::StopSending { id, error_code: 5 };
    client.on_stop_sending(&stop).expect("allowed");
    client.on_stop_sending(&stop).expect("allowed");
    assert_eq!(
        events(&mut client),
        [StreamEvent::Stopped { id, error_code: 5 }]
    );
    assert_eq!(client.write(id, b"x"), Err(WriteError::Stopped(5)));
    assert_eq!(client.finish(id), Err(FinishError::Stopped(5)));
    assert_eq!(client.stats().bytes_held, 0);

    client.on_segment_lost(&sent);
    assert_eq!(ready_changes(&mut client), []);
    assert_eq!(client.take_segment(id, 200), None);
    assert_eq!(client.write_segment(&sent, true, &mut Vec::new()), None);
    let DueControlFrames { frames, tokens } = control_frames(&mut client);
    let reset = frame::ResetStream {
        id,
        error_code: 5,
        final_size: 200,
    };
    assert_eq!(frames, [frame::Frame::ResetStream(reset)]);
    client.on_token_lost(&tokens[0]);
    assert_eq!(control_frames(&mut client).frames, frames);
    client.on_token_acked(&tokens[0]);
    assert!(client.is_idle());
    client.on_token_lost(&tokens[0]);
    assert!(!client.has_control_frames());
}

#[test]
fn a_finished_stream_can_be_reset_until_it_is_acknowledged() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    client.finish(id).expect("still open");
    assert_eq!(client.reset(id, 3), Ok(()));
    assert_eq!(client.reset(id, 3), Err(ClosedStream));
    assert_eq!(ready_changes(&mut client), []);
    let reset = frame::ResetStream {
        id,
        error_code: 3,
        final_size: 0,
    };
    assert_eq!(
        control_frames(&mut client).frames,
        [frame::Frame::ResetStream(reset)]
    );
}

#[test]
fn data_of_a_stopped_stream_still_counts_until_its_end() {
    let mut server = streams(Side::Server);
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    server
        .on_stream(&data(id, 0, &[0; 1000], false))
        .expect("allowed");
    server.stop(id, 8).expect("open");
    assert_eq!(server.stop(id, 8), Err(ClosedStream));
    assert_eq!(server.read(id, 9, || NOW), Err(ReadError::Closed));
    let DueControlFrames { frames, tokens } = control_frames(&mut server);
    let stop = frame::StopSending { id, error_code: 8 };
    assert_eq!(frames, [frame::Frame::StopSending(stop)]);
    server.on_token_lost(&tokens[0]);
    assert!(server.has_control_frames());
    let excess = server.on_stream(&data(id, 1000, b"x", false));
    assert_eq!(code(excess), Some(ErrorCode::FLOW_CONTROL_ERROR));
    let reset = frame::ResetStream {
        id,
        error_code: 8,
        final_size: 1000,
    };
    server.on_reset_stream(&reset).expect("allowed");
    assert!(server.is_idle());
    let more = frame::MaxStreams {
        dir: Dir::Uni,
        maximum: 4,
    };
    assert_eq!(
        control_frames(&mut server).frames,
        [frame::Frame::MaxStreams(more)]
    );
}

#[test]
fn credit_of_dropped_bytes_is_returned() {
    let mut server = streams(Side::Server);
    for index in 0..3 {
        let id = client_bidi(index);
        server
            .on_stream(&data(id, 0, &[0; 500], false))
            .expect("allowed");
        let reset = frame::ResetStream {
            id,
            error_code: 8,
            final_size: 1000,
        };
        server.on_reset_stream(&reset).expect("allowed");
    }
    let more = frame::MaxData { maximum: 6000 };
    assert_eq!(
        control_frames(&mut server).frames,
        [frame::Frame::MaxData(more)]
    );
}

#[test]
fn streams_open_in_order_and_are_accepted_in_order() {
    let mut server = streams(Side::Server);
    server
        .on_stream(&data(client_bidi(2), 0, b"x", false))
        .expect("allowed");
    assert_eq!(server.stats().open, 3);
    for index in 0..3 {
        assert_eq!(server.accept(Dir::Bi), Some(client_bidi(index)));
    }
    assert_eq!(server.accept(Dir::Bi), None);
    let beyond = server.on_stream(&data(client_bidi(4), 0, b"x", false));
    assert_eq!(code(beyond), Some(ErrorCode::STREAM_LIMIT_ERROR));
}

#[test]
fn an_event_reports_that_a_stream_can_be_opened_again() {
    let mut client = streams(Side::Client);
    while client.open(Dir::Uni).is_some() {}
    assert_eq!(client.open(Dir::Uni), None);
    let DueControlFrames { frames, tokens } = control_frames(&mut client);
    let blocked = frame::StreamsBlocked {
        dir: Dir::Uni,
        limit: 3,
    };
    assert_eq!(frames, [frame::Frame::StreamsBlocked(blocked)]);
    client.on_token_lost(&tokens[0]);
    assert!(client.has_control_frames());
    for maximum in [2, 5] {
        let frame = frame::MaxStreams {
            dir: Dir::Uni,
            maximum,
        };
        client.on_max_streams(&frame).expect("allowed");
    }
    assert_eq!(events(&mut client), [StreamEvent::Available(Dir::Uni)]);
    assert!(client.open(Dir::Uni).is_some());
}

/// Ten thousand requests, one after the other.
#[test]
fn no_state_is_left_of_closed_streams() {
    let mut server = streams(Side::Server);
    for index in 0..10_000 {
        let id = client_bidi(index);
        server
            .on_stream(&data(id, 0, b"request", true))
            .expect("allowed");
        assert_eq!(server.accept(Dir::Bi), Some(id));
        assert!(matches!(server.read(id, 100, || NOW), Ok(Some(_))));
        assert_eq!(server.read(id, 100, || NOW), Ok(None));
        server.write(id, b"response").expect("room");
        server.finish(id).expect("open");
        assert!(ready_changes(&mut server).contains(&change(id, true)));
        let segment = server.take_segment(id, 100).expect("ready");
        server.on_segment_acked(&segment);
        events(&mut server);
        ready_changes(&mut server);
        let mut buf = Vec::new();
        server.write_control_frames(&mut buf, 1200, &mut |_| {});
        assert!(server.is_idle() && !server.has_control_frames());
        let again = server.on_stream(&data(id, 0, b"request", true));
        assert!(again.is_ok() && server.is_idle());
        server.credit.raise(server.credit.sent + 1000);
    }
}
