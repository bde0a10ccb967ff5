mod closing;
mod control;
mod copies;
mod ends;
mod exchange;
mod flow_control;
mod hostile;
mod states;
mod transfer;
mod wire;

use super::*;
use crate::priority::Priority;
use crate::time::Instant;
use marline_wire::frame;

const NOW: Instant = Instant::EPOCH;

/// Windows small enough to be reached by tests.
fn config(side: Side) -> StreamsConfig {
    StreamsConfig {
        side,
        receive_window: 3000,
        stream_receive_window: 1000,
        max_receive_window: 12_000,
        max_stream_receive_window: 4000,
        max_remote_bidi: 4,
        max_remote_uni: 3,
        send_buffer_limit: 2000,
    }
}

/// The limits that an end with `config` advertises.
fn limits(config: &StreamsConfig) -> PeerLimits {
    PeerLimits {
        max_data: config.receive_window,
        max_stream_data_bidi_local: config.stream_receive_window,
        max_stream_data_bidi_remote: config.stream_receive_window,
        max_stream_data_uni: config.stream_receive_window,
        max_streams_bidi: config.max_remote_bidi,
        max_streams_uni: config.max_remote_uni,
    }
}

/// One end whose peer has the same configuration.
fn streams(side: Side) -> Streams {
    let mut streams = Streams::new(config(side));
    streams
        .set_peer_limits(&limits(&config(side.peer())))
        .expect("the first limits");
    streams
}

fn client_bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

fn data(id: StreamId, offset: u64, data: &[u8], fin: bool) -> frame::Stream<'_> {
    frame::Stream {
        id,
        offset,
        fin,
        data,
    }
}

fn code(result: Result<(), TransportError>) -> Option<ErrorCode> {
    result.err().map(|error| error.code)
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.poll_event()).collect()
}

fn ready_changes(streams: &mut Streams) -> Vec<ReadyChange> {
    std::iter::from_fn(|| streams.poll_ready_change()).collect()
}

/// A change of the readiness of a stream of default priority.
fn change(id: StreamId, ready: bool) -> ReadyChange {
    ReadyChange {
        id,
        ready: ready.then(Priority::default),
    }
}

struct DueControlFrames {
    frames: Vec<frame::Frame<'static>>,
    tokens: Vec<StreamToken>,
}

/// All due control frames, as the peer parses them, and their tokens.
fn control_frames(streams: &mut Streams) -> DueControlFrames {
    let (mut buf, mut tokens) = (Vec::new(), Vec::new());
    streams.write_control_frames(&mut buf, 1200, &mut |token| tokens.push(token));
    assert!(!streams.has_control_frames());
    let frames = frame::Frames::new(buf.leak())
        .collect::<Result<_, _>>()
        .expect("well-formed frames");
    DueControlFrames { frames, tokens }
}
