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
    let data = streams.take_segment(id, 1_000);
    data.or_else(|| streams.take_end(1_000))
        .expect("it is ready")
}

/// A state that a half is in now, and the end that caused it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Change {
    new: StreamState,
    by: Option<Initiator>,
}

const fn local(new: StreamState) -> Change {
    Change {
        new,
        by: Some(Initiator::Local),
    }
}

const fn remote(new: StreamState) -> Change {
    Change {
        new,
        by: Some(Initiator::Remote),
    }
}

/// The changes of one half, each of which continues the previous one.
fn of_half(changes: &[StreamStateUpdated], id: StreamId, half: StreamHalf) -> Vec<Change> {
    let mut old = None;
    let of_half = changes
        .iter()
        .filter(|change| (change.id, change.half) == (id, half));
    let change = |change: &StreamStateUpdated| {
        assert_eq!(change.old, old.replace(change.new));
        Change {
            new: change.new,
            by: change.trigger,
        }
    };
    of_half.map(change).collect()
}

/// The changes of one half since the last call.
fn changes(streams: &mut Streams, id: StreamId, half: StreamHalf) -> Vec<Change> {
    of_half(&streams.take_state_changes(), id, half)
}

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
        local(StreamState::Ready),
        local(StreamState::Send),
        local(StreamState::DataSent),
        remote(StreamState::DataReceived),
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
            local(StreamState::Ready),
            if stopped {
                remote(StreamState::ResetSent)
            } else {
                local(StreamState::ResetSent)
            },
            remote(StreamState::ResetReceived),
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
    while let Ok(Some(_)) = server.read(id, 9, || Instant::EPOCH) {}
    let changes = server.take_state_changes();
    let expected = [
        remote(StreamState::Receive),
        remote(StreamState::SizeKnown),
        remote(StreamState::DataReceived),
        local(StreamState::DataRead),
    ];
    assert_eq!(of_half(&changes, id, StreamHalf::Receiving), expected);
    let answering = of_half(&changes, id, StreamHalf::Sending);
    assert_eq!(answering, [remote(StreamState::Ready)]);
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
    assert!(server.read(id, 9, || Instant::EPOCH).is_err());
    let states = changes(&mut server, id, StreamHalf::Receiving);
    let last = [
        remote(StreamState::ResetReceived),
        local(StreamState::ResetRead),
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
    let expected = [local(StreamState::Receive)];
    assert_eq!(changes(&mut client, id, StreamHalf::Receiving), expected);
}
