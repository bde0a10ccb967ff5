//! Bounds on the memory and work that a peer can cause.

use super::*;
use crate::limits::MAX_ACKS_UNANSWERED;

/// Typical payload size of a datagram in bytes.
const PAYLOAD: usize = 1400;

#[test]
fn state_is_bounded_if_the_peer_never_acknowledges() {
    let mut attack = Attack::by(Side::Client);
    for _ in 0..20_000 {
        attack.send(&[0x01]);
        attack.drain();
        attack.pair.now += Duration::from_millis(1);
        let now = attack.pair.now;
        let victim = attack.victim();
        if victim.poll_timeout().is_some_and(|timeout| timeout <= now) {
            victim.handle_timeout(now);
        }
    }
    assert_eq!(attack.close_code(), None);
    let held = attack.victim().held();
    let most = MAX_ACKS_UNANSWERED as usize + 500;
    assert!(held.sent_packets <= most, "{held:?}");
    assert!(held.received_ranges <= 16, "{held:?}");
}

#[test]
fn unread_stream_data_stays_within_the_receive_window() {
    let mut attack = Attack::by(Side::Client);
    let windows = TransportConfig::default().receive_windows(Side::Server);
    // One byte in every page that the windows allow: the worst case of the assembler.
    let mut frames = Vec::new();
    for stream in 0..2u64 {
        for page in 1..windows.stream / 1024 {
            frames.extend(varints(&[0x0e, 4 * stream, page * 1024, 1]));
            frames.push(1);
            if frames.len() > PAYLOAD {
                attack.send(&std::mem::take(&mut frames));
                attack.drain();
            }
        }
    }
    assert_eq!(attack.close_code(), None);
    assert!(attack.victim().held().unread as u64 <= windows.all);
}

#[test]
fn streams_that_were_not_accepted_count_against_the_limit() {
    let mut attack = Attack::by(Side::Client);
    let config = TransportConfig::default();
    for n in 0..config.max_concurrent_uni_streams {
        // The stream was opened and reset, and still waits to be accepted.
        attack.send(
            &[
                varints(&[0x08, 4 * n + 2]),
                varints(&[0x04, 4 * n + 2, 0, 0]),
            ]
            .concat(),
        );
        attack.drain();
    }
    assert_eq!(attack.close_code(), None);
    let streams = attack.victim().held().streams as u64;
    assert!(streams <= config.max_concurrent_uni_streams);
    let next = varints(&[0x08, 4 * config.max_concurrent_uni_streams + 2]);
    attack.send(&next);
    assert_eq!(attack.close_code(), Some(ErrorCode::STREAM_LIMIT_ERROR));
}

#[test]
fn floods_of_small_frames_are_answered_with_at_most_two_datagrams() {
    let frames: [&[u8]; 9] = [
        &[0x01],
        &[0x00, 0x01],
        &[0x08, 0x00],
        &[0x0a, 0x00, 0x00],
        &[0x14, 0x00],
        &[0x15, 0x00, 0x00],
        &[0x16, 0x00],
        &[0x05, 0x00, 0x00],
        &[0x30],
    ];
    for frame in frames {
        let mut attack = Attack::by(Side::Client);
        attack.drain();
        let before = attack.victim().held().sent_packets;
        for _ in 0..20 {
            // The last frame of a datagram may extend to its end.
            attack.send(&frame.repeat(PAYLOAD / frame.len()));
            let datagrams = attack.drain().datagrams;
            assert!(datagrams <= 2, "{datagrams} datagrams after {frame:?}");
        }
        assert_eq!(attack.close_code(), None, "{frame:?}");
        let held = attack.victim().held();
        assert!(held.sent_packets <= before + 40, "{held:?} after {frame:?}");
    }
}

#[test]
fn credit_of_single_bytes_causes_at_most_three_datagrams_each() {
    let mut attack = Attack::with(
        Side::Client,
        PairConfig {
            client: TransportConfig {
                receive_window: Some(0),
                stream_receive_window: Some(0),
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        },
    );
    let id = attack.victim().open(Dir::Uni).expect("permitted");
    assert!(attack.victim().write(id, &[7; 100]).is_err(), "no credit");
    for n in 1..=100u64 {
        attack.send(&varints(&[0x11, id.into(), n, 0x10, n]));
        let _ = attack.victim().write(id, &[7; 100]);
        let Sent { datagrams, bytes } = attack.drain();
        assert!(datagrams <= 3 && bytes <= 3 * 1472, "{datagrams}, {bytes}");
    }
    assert_eq!(attack.close_code(), None);
}

#[test]
fn unread_datagrams_beyond_the_receive_buffer_are_dropped() {
    let mut attack = Attack::with(
        Side::Client,
        PairConfig {
            server: TransportConfig {
                datagram_receive_buffer: Some(10_000),
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        },
    );
    for _ in 0..200 {
        let mut frame = vec![0x30];
        frame.resize(1000, 7);
        attack.send(&frame);
        attack.drain();
    }
    let kept = std::iter::from_fn(|| attack.victim().recv_datagram()).count();
    assert!(kept <= 10, "{kept}");
}

#[test]
fn an_ack_frequency_delay_below_the_minimum_is_a_protocol_violation() {
    let frame = varints(&[0xaf, 0, 1, 0, 1]);
    closes(Side::Client, &frame, ErrorCode::PROTOCOL_VIOLATION);
    let most = marline_wire::varint::MAX;
    let mut attack = Attack::by(Side::Client);
    attack.send(&varints(&[
        0xaf, 0, most, most, most, 0xaf, most, most, most, 0,
    ]));
    assert_eq!(attack.close_code(), None);
    attack.send(&[0x01]);
    attack.drain();
}

#[test]
fn connection_close_is_repeated_ever_more_rarely() {
    let mut attack = Attack::by(Side::Client);
    attack.send(&[0x21]);
    let mut answers = 0;
    for _ in 0..1000 {
        attack.deliver(vec![0x40; 30]);
        answers += attack.drain().datagrams;
    }
    assert!(answers <= 12, "{answers} answers to 1000 datagrams");
}
