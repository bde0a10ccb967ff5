use marline_wire::{Dir, Side, frame};

use super::*;
use crate::streams::StreamsConfig;
use crate::streams::{PeerLimits, Segment};
use crate::time::Instant;

fn streams(side: Side) -> Streams {
    let mut streams = Streams::new(StreamsConfig {
        side,
        receive_window: 1_000,
        stream_receive_window: 1_000,
        max_receive_window: 1_000,
        max_stream_receive_window: 1_000,
        max_remote_bidi: 9,
        max_remote_uni: 9,
        send_buffer_limit: 1_000,
    });
    let limits = PeerLimits {
        max_data: 1_000,
        max_stream_data_bidi_local: 1_000,
        max_stream_data_bidi_remote: 1_000,
        max_stream_data_uni: 1_000,
        max_streams_bidi: 9,
        max_streams_uni: 9,
    };
    streams.set_peer_limits(&limits).expect("the first limits");
    streams.log_states();
    streams
}

fn receive(streams: &mut Streams, id: StreamId, offset: u64, data: &[u8], fin: bool) {
    let frame = frame::Stream {
        id,
        offset,
        fin,
        data,
    };
    streams.on_stream(&frame).expect("allowed");
}

fn send_all(streams: &mut Streams, id: StreamId) -> Segment {
    let segment = streams.take_segment(id, 1_000);
    segment.expect("it is ready")
}

/// The changes of one half since the last call; all belong together.
fn changes(
    streams: &mut Streams,
    id: StreamId,
    half: StreamHalf,
) -> Vec<(StreamState, Option<Initiator>)> {
    let changes = streams.take_state_changes().into_iter();
    let mut old = None;
    let of_half = changes.filter(|change| (change.id, change.half) == (id, half));
    of_half
        .enumerate()
        .map(|(nth, change)| {
            assert!(
                nth == 0 || change.old == old,
                "{change:?} does not follow {old:?}"
            );
            old = Some(change.new);
            (change.new, change.trigger)
        })
        .collect()
}

const LOCAL: Option<Initiator> = Some(Initiator::Local);
const REMOTE: Option<Initiator> = Some(Initiator::Remote);

/// RFC 9000, section 3.1.
#[test]
fn states_of_a_sending_half_are_reported_with_the_end_that_caused_them() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.write(id, b"abc").expect("room");
    let sent = send_all(&mut client, id);
    client.finish(id).expect("open");
    let end = send_all(&mut client, id);
    client.on_segment_acked(&sent);
    client.on_segment_acked(&end);
    let expected = [
        (StreamState::Ready, LOCAL),
        (StreamState::Send, LOCAL),
        (StreamState::DataSent, LOCAL),
        (StreamState::DataReceived, REMOTE),
    ];
    assert_eq!(changes(&mut client, id, StreamHalf::Sending), expected);
    assert!(client.take_state_changes().is_empty());
}

/// RFC 9000, sections 3.1 and 3.5.
#[test]
fn reset_is_caused_by_the_application_or_by_stop_sending() {
    let mut client = streams(Side::Client);
    for stopped in [false, true] {
        let id = client.open(Dir::Uni).expect("within the limit");
        if stopped {
            let stop = frame::StopSending { id, error_code: 1 };
            client.on_stop_sending(&stop).expect("allowed");
        } else {
            client.reset(id, 1).expect("open");
        }
        let mut tokens = Vec::new();
        client.write_control_frames(&mut Vec::new(), 100, &mut |token| tokens.push(token));
        client.on_token_acked(&tokens[0]);
        let expected = [
            (StreamState::Ready, LOCAL),
            (StreamState::ResetSent, if stopped { REMOTE } else { LOCAL }),
            (StreamState::ResetReceived, REMOTE),
        ];
        assert_eq!(changes(&mut client, id, StreamHalf::Sending), expected);
    }
}

/// RFC 9000, section 3.2.
#[test]
fn states_of_a_receiving_half_are_reported_with_the_end_that_caused_them() {
    let mut server = streams(Side::Server);
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    receive(&mut server, id, 1, b"bc", true);
    receive(&mut server, id, 0, b"a", false);
    while let Ok(Some(_)) = server.read(id, 9, Instant::EPOCH) {}
    let changes_of_both = server.states.as_ref().expect("kept").changes.clone();
    let expected = [
        (StreamState::Receive, REMOTE),
        (StreamState::SizeKnown, REMOTE),
        (StreamState::DataReceived, REMOTE),
        (StreamState::DataRead, LOCAL),
    ];
    assert_eq!(changes(&mut server, id, StreamHalf::Receiving), expected);
    let opened = changes_of_both
        .iter()
        .find(|change| change.half == StreamHalf::Sending)
        .expect("it can be answered");
    assert_eq!((opened.new, opened.trigger), (StreamState::Ready, REMOTE));
}

/// RFC 9000, section 3.2.
#[test]
fn received_reset_is_read_by_the_application() {
    let mut server = streams(Side::Server);
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    let reset = frame::ResetStream {
        id,
        error_code: 1,
        final_size: 0,
    };
    server.on_reset_stream(&reset).expect("allowed");
    assert!(server.read(id, 9, Instant::EPOCH).is_err());
    let states = changes(&mut server, id, StreamHalf::Receiving);
    let last = [
        (StreamState::ResetReceived, REMOTE),
        (StreamState::ResetRead, LOCAL),
    ];
    assert!(states.ends_with(&last), "{states:?}");
}

#[test]
fn states_of_closed_streams_are_forgotten() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Uni).expect("within the limit");
    client.finish(id).expect("open");
    let end = send_all(&mut client, id);
    assert_eq!(client.states.as_ref().map(|log| log.known.len()), Some(1));
    client.on_segment_acked(&end);
    assert_eq!(client.states.as_ref().map(|log| log.known.len()), Some(0));
}

#[test]
fn receiving_half_of_an_own_stream_is_opened_by_this_end() {
    let mut client = streams(Side::Client);
    let id = client.open(Dir::Bi).expect("within the limit");
    let expected = [(StreamState::Receive, LOCAL)];
    assert_eq!(changes(&mut client, id, StreamHalf::Receiving), expected);
}
