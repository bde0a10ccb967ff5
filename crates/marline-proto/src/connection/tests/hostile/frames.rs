//! Frames that contradict the state of streams, and invalid frames (RFC 9000, sections 4, 12.4 and 19).

use super::*;
use marline_wire::varint;

const STREAM: u64 = 0x08;
const FIN: u64 = 0x01;
const LEN: u64 = 0x02;
const OFF: u64 = 0x04;

/// A STREAM frame with offset and length.
fn stream(id: u64, offset: u64, data: &[u8], fin: bool) -> Vec<u8> {
    let kind = STREAM | OFF | LEN | if fin { FIN } else { 0 };
    let mut frame = varints(&[kind, id, offset, data.len() as u64]);
    frame.extend_from_slice(data);
    frame
}

#[test]
fn a_stream_beyond_the_limit_is_a_stream_limit_error() {
    let id = 4 * TransportConfig::default().max_concurrent_bidi_streams;
    closes(
        Side::Client,
        &stream(id, 0, b"x", false),
        ErrorCode::STREAM_LIMIT_ERROR,
    );
    stays_open(Side::Client, &stream(id - 4, 0, b"x", false));
}

#[test]
fn data_beyond_the_limit_of_a_stream_is_a_flow_control_error() {
    let window = TransportConfig::default()
        .receive_windows(Side::Server)
        .stream;
    closes(
        Side::Client,
        &stream(0, window, b"x", false),
        ErrorCode::FLOW_CONTROL_ERROR,
    );
    stays_open(Side::Client, &stream(0, window - 1, b"x", false));
}

#[test]
fn data_beyond_the_limit_of_the_connection_is_a_flow_control_error() {
    let windows = TransportConfig::default().receive_windows(Side::Server);
    let streams = windows.all / windows.stream + 1;
    let frames: Vec<u8> = (0..streams)
        .flat_map(|n| stream(4 * n, windows.stream - 1, b"x", false))
        .collect();
    closes(Side::Client, &frames, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn a_final_size_beyond_the_limit_in_a_reset_is_a_flow_control_error() {
    let window = TransportConfig::default()
        .receive_windows(Side::Server)
        .stream;
    closes(
        Side::Client,
        &varints(&[0x04, 0, 7, window + 1]),
        ErrorCode::FLOW_CONTROL_ERROR,
    );
}

#[test]
fn stream_data_at_or_beyond_the_largest_offset_closes_the_connection() {
    closes(
        Side::Client,
        &stream(0, varint::MAX, b"x", false),
        ErrorCode::FRAME_ENCODING_ERROR,
    );
    closes(
        Side::Client,
        &stream(0, varint::MAX, b"", true),
        ErrorCode::FLOW_CONTROL_ERROR,
    );
}

#[test]
fn data_after_the_final_size_is_a_final_size_error() {
    let frames = [stream(0, 0, b"1234", true), stream(0, 4, b"5", false)].concat();
    closes(Side::Client, &frames, ErrorCode::FINAL_SIZE_ERROR);
}

#[test]
fn a_final_size_below_the_received_data_is_a_final_size_error() {
    let frames = [stream(0, 0, b"1234", false), stream(0, 0, b"12", true)].concat();
    closes(Side::Client, &frames, ErrorCode::FINAL_SIZE_ERROR);
}

#[test]
fn a_reset_that_changes_the_final_size_is_a_final_size_error() {
    let frames = [stream(0, 0, b"1234", true), varints(&[0x04, 0, 7, 5])].concat();
    closes(Side::Client, &frames, ErrorCode::FINAL_SIZE_ERROR);
}

#[test]
fn frames_for_a_stream_that_their_sender_may_not_use_are_a_stream_state_error() {
    for frame in [
        // STREAM and RESET_STREAM on a unidirectional stream of the server.
        stream(3, 0, b"x", false),
        varints(&[0x04, 3, 0, 0]),
        // STREAM on a bidirectional stream that the server has not opened.
        stream(1, 0, b"x", false),
        // MAX_STREAM_DATA and STOP_SENDING for a stream on which only the client sends.
        varints(&[0x11, 2, 1 << 20]),
        varints(&[0x05, 2, 0]),
        varints(&[0x05, 1, 0]),
        varints(&[0x15, 3, 0]),
    ] {
        closes(Side::Client, &frame, ErrorCode::STREAM_STATE_ERROR);
    }
}

#[test]
fn limits_of_more_than_2_to_the_60_streams_are_a_frame_encoding_error() {
    for kind in [0x12, 0x13, 0x16, 0x17] {
        let frame = varints(&[kind, (1 << 60) + 1]);
        closes(Side::Client, &frame, ErrorCode::FRAME_ENCODING_ERROR);
    }
    stays_open(Side::Client, &varints(&[0x12, 1 << 60]));
}

#[test]
fn limits_smaller_than_before_are_ignored() {
    let frames = varints(&[0x10, 0, 0x12, 0, 0x13, 0]);
    let mut attack = Attack::by(Side::Client);
    attack.send(&frames);
    assert_eq!(attack.close_code(), None);
    assert!(attack.victim().open(Dir::Uni).is_some());
}

#[test]
fn unknown_frame_types_are_a_frame_encoding_error() {
    for kind in [0x21, 0x2f, 0x40, 0x3f3f, varint::MAX] {
        closes(
            Side::Client,
            &varints(&[kind]),
            ErrorCode::FRAME_ENCODING_ERROR,
        );
    }
}

/// If multipath is not negotiated, their types are unknown.
#[test]
fn multipath_frames_are_a_frame_encoding_error_unless_negotiated() {
    let mut new_id = varints(&[0x3e78, 1, 0, 0]);
    new_id.push(4);
    new_id.extend([7; 4 + 16]);
    for side in [Side::Client, Side::Server] {
        for frame in [
            varints(&[0x3e, 0, 0, 0, 0, 0]),
            varints(&[0x3f, 0, 0, 0, 0, 0, 1, 0, 0]),
            varints(&[0x3e75, 0, 0]),
            varints(&[0x3e76, 0, 1]),
            varints(&[0x3e77, 0, 1]),
            new_id.clone(),
            varints(&[0x3e79, 0, 0]),
            varints(&[0x3e7a, 2]),
            varints(&[0x3e7b, 0]),
            varints(&[0x3e7c, 1, 0]),
        ] {
            closes(side, &frame, ErrorCode::FRAME_ENCODING_ERROR);
        }
    }
}

#[test]
fn truncated_frames_are_a_frame_encoding_error() {
    for frame in [
        &[0x06, 0x00, 0x44][..],
        &[0x02, 0x05],
        &[0x0a, 0x00, 0x3f, 0x00],
        &[0x18, 0x01, 0x00, 0x08],
        &[0x1a, 1, 2, 3],
    ] {
        closes(Side::Client, frame, ErrorCode::FRAME_ENCODING_ERROR);
    }
}

#[test]
fn frames_that_only_servers_send_are_a_protocol_violation_from_a_client() {
    closes(Side::Client, &[0x1e], ErrorCode::PROTOCOL_VIOLATION);
    closes(
        Side::Client,
        &[0x07, 0x01, 0xaa],
        ErrorCode::PROTOCOL_VIOLATION,
    );
    stays_open(Side::Server, &[0x1e]);
}

#[test]
fn an_empty_token_is_a_frame_encoding_error() {
    closes(Side::Server, &[0x07, 0x00], ErrorCode::FRAME_ENCODING_ERROR);
}

#[test]
fn a_handshake_message_after_the_handshake_closes_with_unexpected_message() {
    let mut frame = varints(&[0x06, 0, 4]);
    frame.extend_from_slice(&[1, 0, 0, 0]);
    closes(Side::Client, &frame, ErrorCode::crypto(10));
}

#[test]
fn crypto_data_too_far_ahead_closes_with_crypto_buffer_exceeded() {
    let mut frame = varints(&[0x06, 1 << 17, 1]);
    frame.push(0);
    closes(Side::Server, &frame, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
    let mut frame = varints(&[0x06, varint::MAX, 1]);
    frame.push(0);
    closes(Side::Server, &frame, ErrorCode::FRAME_ENCODING_ERROR);
}

#[test]
fn a_datagram_without_support_for_datagrams_is_a_protocol_violation() {
    let mut attack = Attack::with(
        Side::Client,
        PairConfig {
            server: TransportConfig {
                datagram_receive_buffer: None,
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        },
    );
    attack.send(&[0x30, 1, 2, 3]);
    assert_eq!(attack.close_code(), Some(ErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn a_packet_without_frames_is_a_protocol_violation() {
    let mut attack = Attack::by(Side::Client);
    let datagram = attack.attacker().craft_empty();
    attack.deliver(datagram);
    assert_eq!(attack.close_code(), Some(ErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn reserved_header_bits_that_are_set_are_a_protocol_violation() {
    for flip in [0x08, 0x10] {
        let mut attack = Attack::by(Side::Client);
        let now = attack.pair.now;
        let datagram = attack
            .attacker()
            .craft_altered(now, SpaceId::Data, &[0x01], flip);
        attack.deliver(datagram);
        assert_eq!(attack.close_code(), Some(ErrorCode::PROTOCOL_VIOLATION));
    }
}

#[test]
fn a_duplicate_packet_is_dropped() {
    let mut attack = Attack::by(Side::Client);
    let now = attack.pair.now;
    let datagram = attack.attacker().craft(now, SpaceId::Data, &[0x30, 7]);
    for _ in 0..5 {
        attack.deliver(datagram.clone());
    }
    assert_eq!(attack.close_code(), None);
    assert!(attack.victim().recv_datagram().is_some());
    assert!(attack.victim().recv_datagram().is_none());
    assert_eq!(attack.victim().stats().packets_dropped, 4);
}

#[test]
fn datagrams_without_a_valid_packet_are_ignored() {
    let mut attack = Attack::by(Side::Client);
    for len in 0..64 {
        for first in [0x00, 0x40, 0x7f, 0x80, 0xc0, 0xd0, 0xe0, 0xff] {
            let mut datagram = vec![first; len];
            datagram.iter_mut().skip(1).for_each(|byte| *byte = 0);
            attack.deliver(datagram);
        }
    }
    assert_eq!(attack.close_code(), None);
    attack.drain();
}

#[test]
fn control_characters_in_the_reason_of_a_close_are_not_shown() {
    let mut attack = Attack::by(Side::Client);
    let mut frame = varints(&[0x1c, 0x0a, 0, 4]);
    frame.extend_from_slice(b"\xff\x1b[1");
    attack.send(&frame);
    let text = attack.victim().error().expect("closed").to_string();
    assert!(!text.contains('\x1b'), "{text:?}");
    assert_eq!(attack.drain().datagrams, 0, "a draining end sends nothing");
}
