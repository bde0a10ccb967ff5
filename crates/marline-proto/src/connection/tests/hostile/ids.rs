//! Connection IDs and paths (RFC 9000, sections 5.1, 8.2, 9 and 10.3).

use super::*;
use crate::limits::{LOCAL_CIDS, PATH_RESPONSES, REMOTE_CIDS, RETIRED_CIDS};

const RETIRE_CONNECTION_ID: u64 = 0x19;

/// NEW_CONNECTION_ID with an ID and a token made from `seed`.
fn new_id(sequence: u64, retire_prior_to: u64, seed: u8) -> Vec<u8> {
    let mut frame = varints(&[0x18, sequence, retire_prior_to]);
    frame.push(8);
    frame.extend_from_slice(&sequence.to_be_bytes()[1..]);
    frame.push(seed);
    frame.extend_from_slice(&[seed ^ sequence as u8; 16]);
    frame
}

#[test]
fn more_connection_ids_than_allowed_are_a_connection_id_limit_error() {
    let first = LOCAL_CIDS as u64;
    let frames: Vec<u8> = (first..=REMOTE_CIDS as u64 + 1)
        .flat_map(|n| new_id(n, 0, 1))
        .collect();
    closes(Side::Client, &frames, ErrorCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn a_sequence_number_issued_for_two_ids_is_a_protocol_violation() {
    let n = LOCAL_CIDS as u64;
    let frames = [new_id(n, 0, 1), new_id(n, 0, 2)].concat();
    closes(Side::Client, &frames, ErrorCode::PROTOCOL_VIOLATION);
    let frames = [new_id(n, 0, 1), new_id(n, 0, 1)].concat();
    stays_open(Side::Client, &frames);
}

#[test]
fn retire_prior_to_above_the_sequence_number_is_a_frame_encoding_error() {
    closes(
        Side::Client,
        &new_id(9, 10, 1),
        ErrorCode::FRAME_ENCODING_ERROR,
    );
}

#[test]
fn connection_ids_of_an_invalid_length_are_a_frame_encoding_error() {
    for len in [0, 21, 255] {
        let mut frame = varints(&[0x18, 9, 0]);
        frame.push(len);
        frame.extend_from_slice(&[7; 300]);
        closes(Side::Client, &frame, ErrorCode::FRAME_ENCODING_ERROR);
    }
}

#[test]
fn a_flood_of_retirements_closes_with_connection_id_limit_error() {
    let mut attack = Attack::by(Side::Client);
    let first = LOCAL_CIDS as u64;
    for n in first..first + 4 * RETIRED_CIDS as u64 {
        attack.send(&new_id(n, n, 1));
        if attack.close_code().is_some() {
            break;
        }
    }
    assert_eq!(
        attack.close_code(),
        Some(ErrorCode::CONNECTION_ID_LIMIT_ERROR)
    );
}

#[test]
fn retiring_an_id_that_was_never_issued_is_a_protocol_violation() {
    closes(
        Side::Client,
        &varints(&[RETIRE_CONNECTION_ID, 1 << 40]),
        ErrorCode::PROTOCOL_VIOLATION,
    );
}

#[test]
fn retiring_the_id_that_the_packet_was_sent_to_is_a_protocol_violation() {
    closes(
        Side::Client,
        &varints(&[RETIRE_CONNECTION_ID, 0]),
        ErrorCode::PROTOCOL_VIOLATION,
    );
}

#[test]
fn repeated_retirements_do_not_increase_the_number_of_routed_ids() {
    let mut attack = Attack::by(Side::Client);
    for sequence in 1..500 {
        attack.attacker().paths[Slot::FIRST]
            .remote_cids
            .retire(sequence);
        attack.attacker().ping();
        attack.pair.drive(Duration::from_millis(100));
        assert_eq!(attack.close_code(), None);
        assert!(attack.pair.server.endpoint.routes_of_ids() <= LOCAL_CIDS);
    }
    assert!(attack.victim().held().sent_packets < 50);
}

#[test]
fn a_flood_of_path_challenges_gets_a_limited_number_of_responses() {
    let mut attack = Attack::by(Side::Client);
    let challenge = [&[0x1a][..], &[7; 8]].concat();
    attack.drain();
    attack.send(&challenge.repeat(150));
    let sent = attack.drain();
    assert!(sent.datagrams <= 2, "{} datagrams for one", sent.datagrams);
    assert!(sent.bytes <= 2 * 1472);
    attack.pair.drive(Duration::from_secs(1));
    let responses = attack.attacker().stats().frames_received.path_response;
    assert!(responses <= PATH_RESPONSES as u64, "{responses} responses");
}

#[test]
fn path_challenges_from_many_addresses_get_a_limited_number_of_bytes() {
    let mut attack = Attack::by(Side::Client);
    let challenge = [&[0x1a][..], &[7; 8]].concat();
    for port in 1024..1224 {
        let now = attack.pair.now;
        let mut datagram = attack.attacker().craft(now, SpaceId::Data, &challenge);
        let tuple = FourTuple {
            local: attack.pair.server.address,
            remote: SocketAddr::from(([198, 51, 100, 7], port)),
        };
        attack
            .victim()
            .handle_datagram(now, tuple, None, &mut datagram);
        let bytes = attack.drain().bytes;
        assert!(
            bytes <= 3 * datagram.len() + 1472,
            "{bytes} bytes for {}",
            datagram.len()
        );
    }
    assert_eq!(attack.close_code(), None);
}

#[test]
fn the_previous_path_keeps_its_connection_id_after_a_migration() {
    let mut attack = Attack::by(Side::Client);
    let before = *attack.victim().paths[Slot::FIRST].remote_cids.active();
    let client = attack.ends.client;
    let now = attack.pair.now;
    let elsewhere = SocketAddr::from(([192, 0, 2, 77], 50_001));
    attack.pair.client(client).rebind(now, elsewhere);
    attack.pair.drive(Duration::from_millis(15));
    let path = &attack.victim().paths[Slot::FIRST];
    assert_ne!(*path.remote_cids.active(), before);
    let previous = path.tuples.previous.as_ref();
    let previous = previous.expect("the previous 4-tuple is kept");
    assert_eq!(previous.cid.map(|cid| cid.id), Some(before));
}

#[test]
fn a_path_response_without_a_challenge_is_ignored() {
    stays_open(Side::Client, &[&[0x1b][..], &[9; 8]].concat());
}

#[test]
fn guessed_reset_tokens_do_not_end_a_connection() {
    let mut attack = Attack::by(Side::Server);
    let id = attack.victim().handshake_cid();
    for guess in 0..2000u64 {
        let mut datagram = vec![0x40; 40];
        datagram[1..9].copy_from_slice(&id);
        datagram[24..32].copy_from_slice(&guess.to_be_bytes());
        attack.deliver(datagram);
    }
    assert_eq!(attack.close_code(), None);
}

#[test]
fn a_stateless_reset_of_a_server_without_state_ends_the_connection() {
    let mut attack = Attack::by(Side::Server);
    let Ends { client, server } = attack.ends;
    attack.pair.server.connections.remove(&server);
    attack
        .pair
        .server
        .endpoint
        .on_connection_event(server, EndpointEvent::Drained);
    attack.pair.client(client).ping();
    attack.pair.drive(Duration::from_secs(1));
    let ended = attack.pair.client.events.iter().any(|(handle, event)| {
        *handle == client && matches!(event, Event::Closed(ConnectionError::Reset))
    });
    assert!(ended, "no stateless reset");
}

#[test]
fn a_spoofed_address_gets_at_most_three_times_what_it_sent() {
    // Amplification credit that is just too small for a packet, and just large enough.
    for padding in 0..40 {
        send_from_spoofed_address(&vec![1; 1 + padding]);
    }
}

fn send_from_spoofed_address(frames: &[u8]) {
    let mut attack = Attack::by(Side::Client);
    let spoofed = SocketAddr::from(([198, 51, 100, 9], 4000));
    let now = attack.pair.now;
    let mut datagram = attack.attacker().craft(now, SpaceId::Data, frames);
    let tuple = FourTuple {
        local: attack.pair.server.address,
        remote: spoofed,
    };
    attack
        .victim()
        .handle_datagram(now, tuple, None, &mut datagram);
    let mut to_spoofed = 0;
    let mut buf = Vec::new();
    let mut time = now;
    let mut standstill = 0;
    for _ in 0..200 {
        let victim = attack.victim();
        while let Some(transmit) = victim.poll_transmit(time, 1, &mut buf) {
            if transmit.tuple.remote == spoofed {
                to_spoofed += transmit.size;
            }
            buf.clear();
        }
        let Some(next) = victim.poll_timeout() else {
            break;
        };
        // A probe timeout that expired while the amplification limit prevented probes is due immediately (RFC
        // 9002, appendix A.6).
        standstill = if next > time { 0 } else { standstill + 1 };
        assert!(standstill <= 1, "an expired timer stays set");
        time = time.max(next);
        victim.handle_timeout(time);
    }
    assert!(to_spoofed <= 3 * datagram.len(), "{to_spoofed} bytes");
}
