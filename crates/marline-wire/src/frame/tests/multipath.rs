//! The frames of the multipath extension.

use super::*;
use crate::PathId;
use crate::packet::{ProtectedKind, Span};

fn path() -> impl Strategy<Value = PathId> {
    (0..=32u32, any::<u32>())
        .prop_map(|(bits, id)| PathId(id.checked_shr(32 - bits).unwrap_or_default()))
}

pub(super) fn frame() -> impl Strategy<Value = Frame<'static>> {
    prop_oneof![
        (path(), any::<bool>()).prop_map(|(path_id, ecn)| {
            let ack = ack(if ecn { &ACK_ECN } else { &ACK });
            Frame::PathAck(PathAck { path_id, ack })
        }),
        (path(), int()).prop_map(|(path_id, code)| {
            Frame::PathAbandon(PathAbandon {
                path_id,
                error_code: ErrorCode(code),
            })
        }),
        (path(), int()).prop_map(|(path_id, sequence)| {
            Frame::PathStatusBackup(PathStatusBackup { path_id, sequence })
        }),
        (path(), int()).prop_map(|(path_id, sequence)| {
            Frame::PathStatusAvailable(PathStatusAvailable { path_id, sequence })
        }),
        (path(), new_connection_id()).prop_map(|(path_id, issued)| {
            Frame::PathNewConnectionId(PathNewConnectionId { path_id, issued })
        }),
        (path(), int()).prop_map(|(path_id, sequence)| {
            Frame::PathRetireConnectionId(PathRetireConnectionId { path_id, sequence })
        }),
        path().prop_map(|maximum| Frame::MaxPathId(MaxPathId { maximum })),
        path().prop_map(|limit| Frame::PathsBlocked(PathsBlocked { limit })),
        (path(), int()).prop_map(|(path_id, next_sequence)| {
            Frame::PathCidsBlocked(PathCidsBlocked {
                path_id,
                next_sequence,
            })
        }),
    ]
}

/// As [`ACK`], with ECN counts.
static ACK_ECN: [u8; 10] = [0x03, 20, 5, 1, 2, 0, 16, 7, 8, 9];

fn ack(bytes: &[u8]) -> Ack<'_> {
    match only(bytes) {
        Ok(Frame::Ack(ack)) => ack,
        other => panic!("{other:?} is no ACK"),
    }
}

/// One frame of each type with its encoding, written by hand from the draft's figures.
fn by_hand() -> Vec<(Vec<u8>, Frame<'static>)> {
    let path_id = PathId(5);
    let path_ack = |bytes| {
        let ack = ack(bytes);
        Frame::PathAck(PathAck { path_id, ack })
    };
    let issued = NewConnectionId {
        sequence: 3,
        retire_prior_to: 1,
        id: ConnectionId::new(&[0xc1, 0xc2]).unwrap(),
        reset_token: [0xee; 16],
    };
    let mut new_id = vec![0x7e, 0x78, 5, 3, 1, 2, 0xc1, 0xc2];
    new_id.extend([0xee; 16]);
    vec![
        ([&[0x3e, 5], &ACK[1..]].concat(), path_ack(&ACK)),
        ([&[0x3f, 5], &ACK_ECN[1..]].concat(), path_ack(&ACK_ECN)),
        (
            vec![0x7e, 0x75, 5, 0x7e, 0x76],
            Frame::PathAbandon(PathAbandon {
                path_id,
                error_code: ErrorCode::PATH_UNSTABLE_OR_POOR,
            }),
        ),
        (
            vec![0x7e, 0x76, 5, 9],
            Frame::PathStatusBackup(PathStatusBackup {
                path_id,
                sequence: 9,
            }),
        ),
        (
            vec![0x7e, 0x77, 5, 9],
            Frame::PathStatusAvailable(PathStatusAvailable {
                path_id,
                sequence: 9,
            }),
        ),
        (
            new_id,
            Frame::PathNewConnectionId(PathNewConnectionId { path_id, issued }),
        ),
        (
            vec![0x7e, 0x79, 5, 9],
            Frame::PathRetireConnectionId(PathRetireConnectionId {
                path_id,
                sequence: 9,
            }),
        ),
        (
            vec![0x7e, 0x7a, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
            Frame::MaxPathId(MaxPathId {
                maximum: PathId::MAX,
            }),
        ),
        (
            vec![0x7e, 0x7b, 5],
            Frame::PathsBlocked(PathsBlocked { limit: path_id }),
        ),
        (
            vec![0x7e, 0x7c, 5, 9],
            Frame::PathCidsBlocked(PathCidsBlocked {
                path_id,
                next_sequence: 9,
            }),
        ),
    ]
}

#[test]
fn frames_encode_to_handwritten_bytes() {
    for (bytes, frame) in by_hand() {
        assert_eq!(encoded(&frame), bytes);
        assert_eq!(only(&bytes), Ok(frame));
    }
}

#[test]
fn path_ids_above_32_bits_are_protocol_violations() {
    for (bytes, _) in by_hand() {
        let head = if bytes[0] & 0x40 == 0 { 1 } else { 2 };
        let id_len = if bytes[..2] == [0x7e, 0x7a] { 8 } else { 1 };
        let with = |id: u64| {
            let (head, rest) = (&bytes[..head], &bytes[head + id_len..]);
            [head, &encoded_int(id), rest].concat()
        };
        assert!(only(&with(u32::MAX.into())).is_ok(), "{bytes:x?}");
        for id in [1 << 32, varint::MAX] {
            let error = only(&with(id)).unwrap_err();
            assert_eq!(error.kind, FrameErrorKind::LargePathId, "{bytes:x?}");
            let code = TransportError::from(error).code;
            assert_eq!(code, ErrorCode::PROTOCOL_VIOLATION);
        }
    }
}

#[test]
fn inherited_checks_of_ack_and_new_connection_id_apply() {
    let id_of = |sequence: u8, retire: u8, len: u8| {
        let mut bytes = vec![0x7e, 0x78, 5, sequence, retire, len];
        bytes.resize(6 + usize::from(len) + 16, 7);
        bytes
    };
    assert!(only(&id_of(1, 1, 1)).is_ok());
    assert!(only(&id_of(1, 1, 20)).is_ok());
    for bytes in [
        id_of(1, 2, 8),
        id_of(1, 1, 0),
        id_of(1, 1, 21),
        vec![0x3e, 5, 3, 0, 0, 4],
        vec![0x3f, 5, 3, 0, 1, 1, 1, 0, 0, 0, 0],
    ] {
        assert!(
            matches!(kind_of(&bytes), FrameErrorKind::Invalid(_)),
            "{bytes:x?}"
        );
    }
    let endless = [0x3e, 5, 9, 0, 0xff, 255, 255, 255, 255, 255, 255, 255, 0];
    assert_eq!(kind_of(&endless), FrameErrorKind::Truncated);
    assert_eq!(kind_of(&[0x40, 0x3e]), FrameErrorKind::LongType);
}

#[test]
fn multipath_frames_are_permitted_only_in_1_rtt_packets() {
    let token = Span { start: 0, end: 0 };
    for (_, frame) in by_hand() {
        assert!(frame.is_multipath());
        assert_eq!(frame.check_permitted(ProtectedKind::Short), Ok(()));
        for kind in [
            ProtectedKind::Initial { token },
            ProtectedKind::Handshake,
            ProtectedKind::ZeroRtt,
        ] {
            let error = frame.check_permitted(kind).unwrap_err();
            assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
            assert_eq!(error.frame_type, frame.frame_type());
        }
    }
    assert!(!Frame::Ping.is_multipath());
    assert_eq!(Frame::Ping.check_permitted(ProtectedKind::ZeroRtt), Ok(()));
}

#[test]
fn ack_eliciting_and_probing_frames_are_classified() {
    for (_, frame) in by_hand() {
        let acks = matches!(frame, Frame::PathAck(_));
        assert_eq!(frame.is_ack_eliciting(), !acks, "{frame:?}");
        let probes = matches!(frame, Frame::PathNewConnectionId(_));
        assert_eq!(frame.is_probing(), probes, "{frame:?}");
    }
}

#[test]
fn error_codes_match_the_registry() {
    for (code, value, name) in [
        (
            ErrorCode::APPLICATION_ABANDON_PATH,
            0x3e,
            "APPLICATION_ABANDON_PATH",
        ),
        (
            ErrorCode::PATH_RESOURCE_LIMIT_REACHED,
            0x3e75,
            "PATH_RESOURCE_LIMIT_REACHED",
        ),
        (
            ErrorCode::PATH_UNSTABLE_OR_POOR,
            0x3e76,
            "PATH_UNSTABLE_OR_POOR",
        ),
        (
            ErrorCode::NO_CID_AVAILABLE_FOR_PATH,
            0x3e77,
            "NO_CID_AVAILABLE_FOR_PATH",
        ),
    ] {
        assert_eq!(u64::from(code), value);
        assert_eq!(ErrorCode::from(value).name(), Some(name));
    }
}

proptest! {
    #[test]
    fn arbitrary_bodies_decode_or_report_their_frame_type(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        for frame_type in [0x3e, 0x3f].into_iter().chain(0x3e75..=0x3e7c) {
            let bytes = [encoded_int(frame_type), bytes.clone()].concat();
            match Frames::new(&bytes).next() {
                Some(Ok(frame)) => {
                    prop_assert_eq!(frame.frame_type(), frame_type);
                    prop_assert_eq!(only(&encoded(&frame)).unwrap().frame_type(), frame_type);
                }
                Some(Err(error)) => {
                    prop_assert_eq!(error.frame_type, frame_type);
                    prop_assert_ne!(error.kind, FrameErrorKind::UnknownType);
                }
                None => panic!("bytes are something"),
            }
        }
    }
}
