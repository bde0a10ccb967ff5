//! Invalid and injected packets during the handshake (RFC 9000, sections 7, 8.1, 14.1 and 17.2).

use super::*;
use crate::config::RetryPolicy;
use marline_wire::packet::VersionNegotiation;
use std::sync::{Arc, Mutex};

/// A client that has sent nothing yet.
struct Start {
    pair: Pair,
    client: ConnectionHandle,
}

fn start() -> Start {
    let mut pair = Pair::new();
    let client = pair.connect();
    Start { pair, client }
}

/// A handshake that is complete at the client only.
struct HalfDone {
    pair: Pair,
    client: ConnectionHandle,
    server: ConnectionHandle,
}

fn half_done() -> HalfDone {
    let Start { mut pair, client } = start();
    pair.network.filter = Some(Box::new(|direction, datagram: &Datagram| {
        direction == Direction::ToServer && datagram.bytes[0] & 0xb0 != 0x80
    }));
    let done = pair.drive_until(Duration::from_secs(1), |pair| {
        !pair.client(client).is_handshaking()
    });
    assert!(done, "the client has the server's flight");
    let server = pair.server.accepted.pop_front().expect("accepted");
    HalfDone {
        pair,
        client,
        server,
    }
}

fn closed_with(connection: &Connection, code: ErrorCode) {
    match connection.error() {
        Some(ConnectionError::Transport(error)) => assert_eq!(error.code, code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn forbidden_frames_in_initial_packets_close_the_connection() {
    for frame in [
        &[0x08, 0x00][..],
        &[0x1e],
        &[0x1d, 0, 0],
        &[0x18, 1, 0, 4],
        &[0x30],
        &[0x10, 0],
    ] {
        let Start { mut pair, client } = start();
        let now = pair.now;
        let datagram = pair.client(client).craft(now, SpaceId::Initial, frame);
        pair.deliver(Direction::ToServer, datagram);
        let server = pair.server.accepted.pop_front().expect("accepted");
        let error = pair.server(server).error();
        let Some(ConnectionError::Transport(error)) = error else {
            panic!("{error:?} after {frame:?}")
        };
        assert!(
            [
                ErrorCode::PROTOCOL_VIOLATION,
                ErrorCode::FRAME_ENCODING_ERROR
            ]
            .contains(&error.code)
        );
    }
}

#[test]
fn forbidden_frames_in_handshake_packets_are_a_protocol_violation() {
    for frame in [&[0x08, 0x00][..], &[0x1e], &[0x10, 0], &[0x7e, 0x7a, 1]] {
        let HalfDone {
            mut pair,
            client,
            server,
        } = half_done();
        let now = pair.now;
        let datagram = pair.server(server).craft(now, SpaceId::Handshake, frame);
        pair.deliver(Direction::ToClient, datagram);
        closed_with(pair.client(client), ErrorCode::PROTOCOL_VIOLATION);
    }
}

#[test]
fn a_server_may_open_streams_before_the_handshake_completes() {
    let HalfDone {
        mut pair, server, ..
    } = half_done();
    assert!(pair.server(server).can_seal(SpaceId::Data));
    assert!(pair.server(server).is_handshaking());
    let id = pair.server(server).open(Dir::Uni);
    assert!(id.is_some(), "0.5-RTT data may be written");
}

#[test]
fn a_wrong_source_connection_id_of_a_client_is_a_transport_parameter_error() {
    let Start { mut pair, client } = start();
    pair.client(client).falsify_source_cid();
    pair.drive(Duration::from_millis(50));
    let server = pair.server.accepted.pop_front().expect("accepted");
    closed_with(pair.server(server), ErrorCode::TRANSPORT_PARAMETER_ERROR);
}

#[test]
fn a_wrong_source_connection_id_of_a_server_is_a_transport_parameter_error() {
    let Start { mut pair, client } = start();
    let now = pair.now;
    let mut buf = Vec::new();
    pair.client(client)
        .poll_transmit(now, 1, &mut buf)
        .expect("a first flight");
    pair.deliver(Direction::ToServer, buf);
    let server = pair.server.accepted.pop_front().expect("accepted");
    pair.server(server).falsify_source_cid();
    pair.drive(Duration::from_millis(50));
    closed_with(pair.client(client), ErrorCode::TRANSPORT_PARAMETER_ERROR);
}

#[test]
fn version_negotiation_with_our_version_or_other_ids_is_ignored() {
    let Start { mut pair, client } = start();
    let connection = pair.client(client);
    let (dcid, scid) = (
        connection.handshake_cid(),
        connection.original_destination(),
    );
    for (dcid, scid, versions) in [
        (&*dcid, &*scid, &[0x0a0a_0a0a, 1][..]),
        (&*scid, &*dcid, &[0x0a0a_0a0a]),
        (&*dcid, &*dcid, &[0x0a0a_0a0a]),
    ] {
        let mut offer = Vec::new();
        VersionNegotiation::encode(dcid, scid, versions, 7, &mut offer);
        pair.deliver(Direction::ToClient, offer);
        assert!(pair.client(client).error().is_none());
    }
}

#[test]
fn version_negotiation_after_any_packet_is_ignored() {
    let HalfDone {
        mut pair, client, ..
    } = half_done();
    let connection = pair.client(client);
    let mut offer = Vec::new();
    VersionNegotiation::encode(
        &connection.handshake_cid(),
        &connection.original_destination(),
        &[0x0a0a_0a0a],
        7,
        &mut offer,
    );
    pair.deliver(Direction::ToClient, offer);
    assert!(pair.client(client).error().is_none());
}

#[test]
fn a_retry_with_an_invalid_tag_and_a_second_retry_are_ignored() {
    let Start { mut pair, client } = start();
    let connection = pair.client(client);
    let original = connection.original_destination();
    let id = connection.handshake_cid();
    let scid = ConnectionId::new(&[9; 8]).expect("short");
    let good = forge_retry(original, id, scid, b"token");
    for index in 0..good.len() {
        let mut bad = good.clone();
        bad[index] ^= 1;
        pair.deliver(Direction::ToClient, bad);
    }
    assert!(
        pair.client(client)
            .establishment
            .progress()
            .retry_source()
            .is_none()
    );
    pair.deliver(Direction::ToClient, good);
    assert_eq!(
        pair.client(client).establishment.progress().retry_source(),
        Some(scid)
    );
    let again = forge_retry(original, id, original, b"other");
    pair.deliver(Direction::ToClient, again);
    assert_eq!(
        pair.client(client).establishment.progress().retry_source(),
        Some(scid),
        "the second Retry is ignored"
    );
}

#[test]
fn a_forged_retry_closes_with_transport_parameter_error() {
    let Start { mut pair, client } = start();
    let connection = pair.client(client);
    let original = connection.original_destination();
    let id = connection.handshake_cid();
    let scid = ConnectionId::new(&[9; 8]).expect("short");
    pair.deliver(
        Direction::ToClient,
        forge_retry(original, id, scid, b"token"),
    );
    pair.drive(Duration::from_millis(100));
    closed_with(pair.client(client), ErrorCode::TRANSPORT_PARAMETER_ERROR);
}

#[test]
fn a_retry_after_any_packet_is_ignored() {
    let HalfDone {
        mut pair, client, ..
    } = half_done();
    let connection = pair.client(client);
    let retry = forge_retry(
        connection.original_destination(),
        connection.handshake_cid(),
        ConnectionId::new(&[9; 8]).expect("short"),
        b"token",
    );
    pair.deliver(Direction::ToClient, retry);
    assert!(
        pair.client(client)
            .establishment
            .progress()
            .retry_source()
            .is_none()
    );
}

#[test]
fn an_initial_packet_in_a_small_datagram_is_dropped_by_servers() {
    let Start { mut pair, client } = start();
    let now = pair.now;
    let flight = pair.client(client).craft(now, SpaceId::Initial, &[0x01]);
    pair.deliver(Direction::ToServer, flight);
    let server = pair.server.accepted.pop_front().expect("accepted");
    let dropped = pair.server(server).stats().packets_dropped;
    let received = pair.server(server).stats().frames_received.ping;
    let connection = pair.client(client);
    connection.paths[Slot::FIRST].ping_due = false;
    let mut small = connection.craft_small_initial(now, &[0x01]);
    assert!(small.len() < 1200);
    pair.deliver(Direction::ToServer, std::mem::take(&mut small));
    assert_eq!(pair.server(server).stats().packets_dropped, dropped + 1);
    assert_eq!(pair.server(server).stats().frames_received.ping, received);
}

#[test]
fn an_initial_packet_of_a_server_with_a_token_is_dropped() {
    let Start { mut pair, client } = start();
    let now = pair.now;
    let mut buf = Vec::new();
    pair.client(client)
        .poll_transmit(now, 1, &mut buf)
        .expect("a first flight");
    pair.deliver(Direction::ToServer, buf);
    let server = pair.server.accepted.pop_front().expect("accepted");
    pair.server(server)
        .establishment
        .progress_mut()
        .set_initial_token(vec![1; 20]);
    let datagram = pair.server(server).craft(now, SpaceId::Initial, &[0x01]);
    pair.deliver(Direction::ToClient, datagram);
    assert_eq!(pair.client(client).stats().frames_received.ping, 0);
    assert!(pair.client(client).error().is_none());
}

#[test]
fn a_client_without_an_answer_gets_at_most_three_times_what_it_sent() {
    let mut pair = start().pair;
    let sent = Arc::new(Mutex::new(0));
    let count = Arc::clone(&sent);
    let mut is_first = true;
    pair.network.filter = Some(Box::new(
        move |direction, datagram: &Datagram| match direction {
            Direction::ToServer => !std::mem::take(&mut is_first),
            Direction::ToClient => {
                *count.lock().expect("one thread") += datagram.bytes.len();
                true
            }
        },
    ));
    pair.drive(Duration::from_secs(30));
    let sent = *sent.lock().expect("one thread");
    assert!(sent > 1200 && sent <= 3 * 1200, "{sent} bytes for 1200");
    assert_eq!(pair.server.endpoint.open_connections(), 0, "timed out");
}

#[test]
fn incomplete_handshakes_are_limited_in_number_and_time() {
    let mut pair = Pair::with(PairConfig {
        adjust_server: Box::new(|server| {
            server.retry = RetryPolicy::WhenBusy { handshakes: 20 };
        }),
        ..PairConfig::default()
    });
    pair.network.conditions(Direction::ToClient).down = true;
    for _ in 0..200 {
        pair.connect();
    }
    pair.drive(Duration::from_secs(1));
    assert_eq!(pair.server.endpoint.open_connections(), 20);
    assert!(
        pair.server
            .connections
            .values()
            .all(|connection| connection.held().deferred <= 10)
    );
    pair.drive(Duration::from_secs(30));
    assert_eq!(pair.server.endpoint.open_connections(), 0);
    assert_eq!(pair.client.endpoint.open_connections(), 0);
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let mut pair = Pair::with(PairConfig {
        adjust_server: Box::new(|server| server.max_connections = 3),
        ..PairConfig::default()
    });
    for _ in 0..5 {
        pair.connect();
    }
    pair.drive(Duration::from_secs(1));
    assert_eq!(pair.server.endpoint.open_connections(), 3);
    let refused = pair.client.events.iter().filter(|(_, event)| {
        matches!(
            event,
            Event::Closed(ConnectionError::PeerTransport {
                code: ErrorCode::CONNECTION_REFUSED,
                ..
            })
        )
    });
    assert_eq!(refused.count(), 2);
}

#[test]
fn replayed_early_data_is_not_delivered_and_its_connection_stays_replayable() {
    let mut pair = Pair::with(PairConfig {
        zero_rtt: true,
        ..PairConfig::default()
    });
    pair.establish();
    pair.drive(Duration::from_secs(1));
    let client = pair.connect();
    assert!(pair.client(client).has_zero_rtt());
    let id = pair.client(client).open(Dir::Uni).expect("remembered");
    pair.client(client)
        .write(id, b"early")
        .expect("the window is open");
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&recorded);
    pair.network.filter = Some(Box::new(move |direction, datagram: &Datagram| {
        if direction == Direction::ToServer {
            record
                .lock()
                .expect("one thread")
                .push(datagram.bytes.clone());
        }
        false
    }));
    pair.flush();
    let flight = std::mem::take(&mut *recorded.lock().expect("one thread"));
    pair.drive(Duration::from_millis(11));
    let first = pair.server.accepted.pop_front().expect("accepted");
    let now = pair.now;
    assert!(pair.server(first).is_replayable());
    let read = pair.server(first).read(|| now, id, 100);
    assert_eq!(read, Ok(Some(Bytes::from_static(b"early"))));
    pair.drive(Duration::from_secs(1));
    assert!(!pair.server(first).is_replayable());

    for bytes in flight {
        pair.deliver_from(SocketAddr::from(([198, 51, 100, 3], 999)), bytes);
    }
    let second = pair.server.accepted.pop_front().expect("accepted");
    let now = pair.now;
    let replayed = pair.server(second);
    assert!(replayed.is_replayable());
    assert!(
        replayed.read(|| now, id, 100).is_err(),
        "the ticket was used"
    );
    pair.drive(Duration::from_secs(5));
    assert!(pair.server(second).is_replayable());
}
