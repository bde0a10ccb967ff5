//! Stream data on its way to the queue of a path and into packets, without a connection.

use std::net::SocketAddr;

use bytes::Bytes;
use marline_wire::frame::{Frame, Frames};
use marline_wire::{ConnectionId, Dir, Side};

use super::*;
use crate::config::TransportConfig;
use crate::paths::{FirstPath, PathSet};
use crate::recovery::InitialWindowChoice;
use crate::rng::{ConnectionRng, SecureRng};
use crate::scheduling::stream::Rfc9218;
use crate::streams::{PeerLimits, Segment, StreamsConfig};
use crate::tuple::FourTuple;

/// A client that may send without limit on one path.
struct Bench {
    sending: Sending,
    streams: Streams,
    paths: PathSet,
}

impl Bench {
    fn new() -> Self {
        let mut streams = Streams::new(StreamsConfig {
            side: Side::Client,
            receive_window: 1 << 20,
            stream_receive_window: 1 << 20,
            max_receive_window: 1 << 20,
            max_stream_receive_window: 1 << 20,
            max_remote_bidi: 0,
            max_remote_uni: 0,
            send_buffer_limit: 1 << 20,
        });
        let limits = PeerLimits {
            max_data: 1 << 20,
            max_stream_data_bidi_local: 1 << 20,
            max_stream_data_bidi_remote: 1 << 20,
            max_stream_data_uni: 1 << 20,
            max_streams_bidi: 10,
            max_streams_uni: 10,
        };
        streams.set_peer_limits(&limits).expect("first limits");
        let address = SocketAddr::from(([192, 0, 2, 1], 443));
        let first = FirstPath {
            addresses: FourTuple {
                local: address,
                remote: address,
            },
            is_validated: true,
            local_cid: ConnectionId::EMPTY,
            remote_cid: ConnectionId::EMPTY,
            initial_window: InitialWindowChoice {
                bytes: 12_000,
                default: 12_000,
            },
            initial_rtt: TransportConfig::default().initial_rtt,
        };
        let mut rng = ConnectionRng::new(SecureRng::from_seed([1; 32]));
        Self {
            sending: Sending::new(Box::new(Rfc9218::default())),
            streams,
            paths: PathSet::new(&TransportConfig::default(), first, &mut rng),
        }
    }

    /// Opens a stream with `bytes` bytes to send.
    fn write(&mut self, bytes: usize) -> StreamId {
        let id = self.streams.open(Dir::Uni).expect("a stream");
        let mut data = Bytes::from(vec![7; bytes]);
        self.streams.write_chunk(id, &mut data).expect("room");
        self.sending.refresh(&mut self.streams);
        id
    }

    /// The stream, offset and length of each frame of a packet with `room` bytes.
    fn packet(&mut self, room: usize, may_end_packet: bool) -> Vec<(StreamId, u64, usize)> {
        let filling = Filling {
            path: Slot::FIRST,
            limit: room,
            may_end_packet,
        };
        let mut content = Content {
            streams: &mut self.streams,
            paths: &mut self.paths,
        };
        let mut buf = Vec::new();
        self.sending.fill(&filling, &mut content, &mut buf);
        assert!(buf.len() <= room);
        let frames = Frames::new(&buf).map(|frame| match frame {
            Ok(Frame::Stream(frame)) => (frame.id, frame.offset, frame.data.len()),
            other => panic!("{other:?}"),
        });
        frames.collect()
    }

    fn copy_repeats(&mut self) -> bool {
        let mut content = Content {
            streams: &mut self.streams,
            paths: &mut self.paths,
        };
        self.sending.copy_repeats(&mut content)
    }
}

#[test]
fn packets_carry_streams_in_order_and_never_exceed_their_room() {
    let mut bench = Bench::new();
    let (first, second) = (bench.write(150), bench.write(60));
    let ends = bench.packet(100, true);
    assert_eq!(ends, [(first, 0, 98)], "type and stream ID, no length");
    assert_eq!(bench.packet(100, false), [(first, 98, 52), (second, 0, 40)]);
    assert_eq!(bench.packet(100, false), [(second, 40, 20)]);
    assert_eq!(bench.packet(100, false), []);
}

#[test]
fn too_little_room_for_a_frame_leaves_the_data_ready() {
    let mut bench = Bench::new();
    let id = bench.write(50);
    assert_eq!(bench.packet(20, true), []);
    assert_eq!(bench.sending.ready(), Some(id));
}

#[test]
fn lost_data_is_due_twice_once_nothing_else_waits() {
    let mut bench = Bench::new();
    let id = bench.write(50);
    assert_eq!(bench.packet(1000, false).len(), 1);
    let segment = Segment {
        id,
        offset: 0,
        len: 50,
        fin: false,
    };
    bench.streams.on_segment_lost(&segment);
    bench.sending.on_lost(&Token::Segment(segment));
    bench.sending.refresh(&mut bench.streams);
    assert!(!bench.copy_repeats(), "the data itself is due first");
    assert_eq!(bench.packet(1000, false), [(id, 0, 50)]);
    assert!(bench.copy_repeats());
    assert_eq!(bench.packet(1000, false), [(id, 0, 50)], "once more");
    assert!(!bench.copy_repeats());
}
