use super::*;
use crate::{ConnectionId, Dir, ErrorCode, StreamId, TransportError};
use proptest::prelude::*;

mod multipath;

/// Source of the data in generated frames, which borrow it.
static DATA: [u8; 300] = [0xa5; 300];
/// Acknowledges 18 to 20 and 0 to 16.
static ACK: [u8; 7] = [0x02, 20, 5, 1, 2, 0, 16];

fn data() -> impl Strategy<Value = &'static [u8]> {
    (0..=DATA.len()).prop_map(|len| &DATA[..len])
}

fn int() -> impl Strategy<Value = u64> {
    (0..=62u32, 0..=varint::MAX).prop_map(|(bits, value)| value >> (62 - bits))
}

fn stream() -> impl Strategy<Value = StreamId> {
    int().prop_map(StreamId::from)
}

fn dir() -> impl Strategy<Value = Dir> {
    prop_oneof![Just(Dir::Bi), Just(Dir::Uni)]
}

fn offset() -> impl Strategy<Value = u64> {
    int().prop_map(|offset| offset.min(varint::MAX - DATA.len() as u64))
}

fn stream_frame() -> impl Strategy<Value = Stream<'static>> {
    (stream(), offset(), any::<bool>(), data()).prop_map(|(id, offset, fin, data)| Stream {
        id,
        offset,
        fin,
        data,
    })
}

fn new_connection_id() -> impl Strategy<Value = NewConnectionId> {
    (int(), int(), 1..=20usize, any::<[u8; 16]>()).prop_map(|(a, b, len, reset_token)| {
        NewConnectionId {
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            id: ConnectionId::new(&DATA[..len]).unwrap(),
            reset_token,
        }
    })
}

fn control() -> impl Strategy<Value = Frame<'static>> {
    prop_oneof![
        (1..50usize).prop_map(|len| Frame::Padding { len }),
        Just(Frame::Ping),
        Just(Frame::HandshakeDone),
        Just(Frame::ImmediateAck),
        Just(only(&ACK).unwrap()),
        (int(), int(), int(), int()).prop_map(|(sequence, threshold, delay, reordering)| {
            Frame::AckFrequency(AckFrequency {
                sequence,
                ack_eliciting_threshold: threshold,
                requested_max_ack_delay: delay,
                reordering_threshold: reordering,
            })
        }),
        (int(), int(), data()).prop_map(|(code, frame_type, reason)| {
            Frame::ConnectionClose(ConnectionClose {
                error_code: ErrorCode(code),
                frame_type,
                reason,
            })
        }),
        (int(), data()).prop_map(|(error_code, reason)| {
            Frame::ApplicationClose(ApplicationClose { error_code, reason })
        }),
        (1..=DATA.len()).prop_map(|len| Frame::NewToken(NewToken {
            token: &DATA[..len]
        })),
        new_connection_id().prop_map(Frame::NewConnectionId),
        int().prop_map(|sequence| Frame::RetireConnectionId(RetireConnectionId { sequence })),
        any::<[u8; 8]>().prop_map(|data| Frame::PathChallenge(PathChallenge { data })),
        any::<[u8; 8]>().prop_map(|data| Frame::PathResponse(PathResponse { data })),
    ]
}

fn content() -> impl Strategy<Value = Frame<'static>> {
    prop_oneof![
        stream_frame().prop_map(Frame::Stream),
        (offset(), data()).prop_map(|(offset, data)| Frame::Crypto(Crypto { offset, data })),
        data().prop_map(|data| Frame::Datagram(Datagram { data })),
        (stream(), int(), int()).prop_map(|(id, error_code, final_size)| {
            Frame::ResetStream(ResetStream {
                id,
                error_code,
                final_size,
            })
        }),
        (stream(), int())
            .prop_map(|(id, error_code)| Frame::StopSending(StopSending { id, error_code })),
        int().prop_map(|maximum| Frame::MaxData(MaxData { maximum })),
        (stream(), int())
            .prop_map(|(id, maximum)| Frame::MaxStreamData(MaxStreamData { id, maximum })),
        (dir(), 0..=MAX_STREAMS)
            .prop_map(|(dir, maximum)| Frame::MaxStreams(MaxStreams { dir, maximum })),
        int().prop_map(|limit| Frame::DataBlocked(DataBlocked { limit })),
        (stream(), int())
            .prop_map(|(id, limit)| Frame::StreamDataBlocked(StreamDataBlocked { id, limit })),
        (dir(), 0..=MAX_STREAMS)
            .prop_map(|(dir, limit)| Frame::StreamsBlocked(StreamsBlocked { dir, limit })),
    ]
}

fn frame() -> impl Strategy<Value = Frame<'static>> {
    prop_oneof![control(), content(), multipath::frame()]
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut buf = Vec::new();
    frame.encode(&mut buf);
    buf
}

/// The first frame of `bytes`, which must be the only one.
fn only(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    let mut frames = Frames::new(bytes);
    let frame = frames.next().expect("not empty");
    assert_eq!(frames.next(), None);
    frame
}

/// The result of the frame's `size`, if it has that method.
fn size(frame: &Frame<'_>) -> Option<usize> {
    Some(match frame {
        Frame::ResetStream(frame) => frame.size(),
        Frame::StopSending(frame) => frame.size(),
        Frame::Crypto(frame) => frame.size(),
        Frame::NewToken(frame) => frame.size(),
        Frame::Stream(frame) => frame.size(),
        Frame::MaxData(frame) => frame.size(),
        Frame::MaxStreamData(frame) => frame.size(),
        Frame::MaxStreams(frame) => frame.size(),
        Frame::DataBlocked(frame) => frame.size(),
        Frame::StreamDataBlocked(frame) => frame.size(),
        Frame::StreamsBlocked(frame) => frame.size(),
        Frame::NewConnectionId(frame) => frame.size(),
        Frame::RetireConnectionId(frame) => frame.size(),
        Frame::PathChallenge(frame) => frame.size(),
        Frame::PathResponse(frame) => frame.size(),
        Frame::ConnectionClose(frame) => frame.size(),
        Frame::ApplicationClose(frame) => frame.size(),
        Frame::Datagram(frame) => frame.size(),
        Frame::AckFrequency(frame) => frame.size(),
        Frame::PathAbandon(frame) => frame.size(),
        Frame::PathStatusBackup(frame) => frame.size(),
        Frame::PathStatusAvailable(frame) => frame.size(),
        Frame::PathNewConnectionId(frame) => frame.size(),
        Frame::PathRetireConnectionId(frame) => frame.size(),
        Frame::MaxPathId(frame) => frame.size(),
        Frame::PathsBlocked(frame) => frame.size(),
        Frame::PathCidsBlocked(frame) => frame.size(),
        Frame::Padding { .. }
        | Frame::Ping
        | Frame::Ack(_)
        | Frame::PathAck(_)
        | Frame::HandshakeDone
        | Frame::ImmediateAck => return None,
    })
}

fn kind_of(bytes: &[u8]) -> FrameErrorKind {
    only(bytes).unwrap_err().kind
}

fn encoded_int(value: u64) -> Vec<u8> {
    let mut buf = Vec::new();
    varint::encode(value, &mut buf);
    buf
}

#[test]
fn frame_types_match_the_registry() {
    let stream = Stream {
        id: StreamId::from(4),
        offset: 1,
        fin: true,
        data: b"x",
    };
    assert_eq!(encoded(&Frame::Stream(stream)), b"\x0f\x04\x01\x01x");
    assert_eq!(encoded(&Frame::ImmediateAck), [0x1f]);
    let uni = MaxStreams {
        dir: Dir::Uni,
        maximum: 3,
    };
    assert_eq!(encoded(&Frame::MaxStreams(uni)), [0x13, 3]);
    let frequency = AckFrequency {
        sequence: 0,
        ack_eliciting_threshold: 10,
        requested_max_ack_delay: 25_000,
        reordering_threshold: 3,
    };
    assert_eq!(
        encoded(&Frame::AckFrequency(frequency)),
        [0x40, 0xaf, 0, 10, 0x80, 0, 0x61, 0xa8, 3]
    );
}

#[test]
fn data_without_a_length_extends_to_the_end_of_the_packet() {
    let stream = Stream {
        id: StreamId::from(4),
        offset: 0,
        fin: false,
        data: b"xy",
    };
    assert_eq!(only(b"\x08\x04xy"), Ok(Frame::Stream(stream)));
    let datagram = Datagram { data: b"xy" };
    assert_eq!(only(b"\x30xy"), Ok(Frame::Datagram(datagram)));
}

#[test]
fn forbidden_values_are_errors() {
    let too_many = encoded_int(MAX_STREAMS + 1);
    let last = encoded_int(varint::MAX);
    let id_of = |sequence: u8, retire: u8, len: u8| {
        let mut bytes = vec![0x18, sequence, retire, len];
        bytes.resize(4 + usize::from(len) + 16, 7);
        bytes
    };
    assert!(only(&id_of(1, 1, 20)).is_ok());
    for bytes in [
        [&[0x12], &too_many[..]].concat(),
        [&[0x17], &too_many[..]].concat(),
        [&[0x06], &last[..], &[1, 0]].concat(),
        [&[0x0c, 0], &last[..], &[0]].concat(),
        vec![0x07, 0],
        id_of(1, 2, 8),
        id_of(1, 1, 0),
        id_of(1, 1, 21),
    ] {
        assert!(
            matches!(kind_of(&bytes), FrameErrorKind::Invalid(_)),
            "{bytes:x?}"
        );
    }
}

#[test]
fn unknown_and_overlong_frame_types_are_errors() {
    assert_eq!(kind_of(&[0x20]), FrameErrorKind::UnknownType);
    assert_eq!(kind_of(&[0x40, 0x01]), FrameErrorKind::LongType);
    assert_eq!(kind_of(&[0x80, 0, 0, 0xaf]), FrameErrorKind::LongType);
    assert_eq!(kind_of(&[0x40]), FrameErrorKind::Truncated);
    let code = |bytes| TransportError::from(only(bytes).unwrap_err()).code;
    assert_eq!(code(&[0x20]), ErrorCode::FRAME_ENCODING_ERROR);
    assert_eq!(code(&[0x40, 0x01]), ErrorCode::PROTOCOL_VIOLATION);
    let error = TransportError::from(only(&[0x20]).unwrap_err());
    assert_eq!(error.frame_type, 0x20);
}

#[test]
fn ack_eliciting_and_probing_frames_are_classified() {
    let challenge = Frame::PathChallenge(PathChallenge { data: [1; 8] });
    let close = Frame::ApplicationClose(ApplicationClose {
        error_code: 0,
        reason: b"",
    });
    let padding = Frame::Padding { len: 1 };
    let ack = only(&ACK).unwrap();
    assert!(challenge.is_ack_eliciting() && challenge.is_probing());
    assert!(Frame::Ping.is_ack_eliciting() && !Frame::Ping.is_probing());
    assert!(!padding.is_ack_eliciting() && padding.is_probing());
    assert!(!ack.is_ack_eliciting() && !ack.is_probing());
    assert!(!close.is_ack_eliciting() && !close.is_probing());
}

proptest! {
    #[test]
    fn decode_inverts_encode(frame in frame()) {
        let buf = encoded(&frame);
        prop_assert_eq!(only(&buf), Ok(frame));
        if let Some(size) = size(&frame) {
            prop_assert_eq!(buf.len(), size);
        }
        prop_assert_eq!(Reader::new(&buf).varint(), Ok(frame.frame_type()));
        if !matches!(frame, Frame::Padding { .. }) {
            for len in 1..buf.len() {
                prop_assert_eq!(kind_of(&buf[..len]), FrameErrorKind::Truncated);
            }
        }
    }

    #[test]
    fn frames_keep_their_order(frames in proptest::collection::vec(frame(), 0..20)) {
        let mut buf = Vec::new();
        let mut expected = Vec::new();
        for frame in frames {
            frame.encode(&mut buf);
            match (expected.last_mut(), frame) {
                (Some(Frame::Padding { len }), Frame::Padding { len: more }) => *len += more,
                _ => expected.push(frame),
            }
        }
        let decoded: Result<Vec<_>, _> = Frames::new(&buf).collect();
        prop_assert_eq!(decoded, Ok(expected));
    }

    #[test]
    fn encode_header_followed_by_data_is_a_stream_frame(frame in stream_frame(), explicit: bool) {
        let Stream { id, offset, fin, data } = frame;
        let mut buf = Vec::new();
        Stream::encode_header(id, offset, data.len(), fin, explicit, &mut buf);
        prop_assert_eq!(buf.len(), Stream::header_size(id, offset, data.len(), explicit));
        buf.extend_from_slice(data);
        prop_assert_eq!(only(&buf), Ok(Frame::Stream(frame)));
    }

    #[test]
    fn arbitrary_bytes_decode_to_encodable_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut read = 0;
        for frame in Frames::new(&bytes) {
            let Ok(frame) = frame else { break };
            let again = encoded(&frame);
            prop_assert!(only(&again).is_ok());
            read += 1;
        }
        prop_assert!(read <= bytes.len());
    }

    #[test]
    fn a_corrupted_frame_never_panics(
        frame in frame(),
        at: proptest::sample::Index,
        byte: u8,
    ) {
        let mut buf = encoded(&frame);
        let at = at.index(buf.len());
        buf[at] = byte;
        prop_assert!(Frames::new(&buf).count() >= 1);
    }
}
