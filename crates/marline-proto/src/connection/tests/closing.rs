//! Immediate close: the closing and draining states (RFC 9000, section 10.2).

use super::*;

#[test]
fn a_close_reports_its_reason_to_the_peer_and_both_ends_drop_the_connection() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let now = pair.now;
    pair.client(ends.client).close(now, 7, b"done");
    pair.drive(Duration::from_secs(5));
    let reason = Bytes::from_static(b"done");
    assert_eq!(
        server_end(&pair, ends.server),
        Some(ConnectionError::PeerApplication { code: 7, reason })
    );
    assert_eq!(
        client_end(&pair, ends.client),
        Some(ConnectionError::LocallyClosed)
    );
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
}

#[test]
fn a_lost_connection_close_is_repeated_if_the_peer_goes_on_sending() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(1 << 20));
    pair.drive_until(Duration::from_millis(30), |pair| transfer.advance(pair));
    let mut lost = false;
    pair.network.filter = Some(Box::new(move |direction, _| {
        direction == Direction::ToServer && !std::mem::replace(&mut lost, true)
    }));
    let now = pair.now;
    pair.client(ends.client).close(now, 1, b"");
    pair.drive(Duration::from_millis(100));
    let end = server_end(&pair, ends.server);
    assert!(
        matches!(end, Some(ConnectionError::PeerApplication { code: 1, .. })),
        "{end:?}"
    );
}

#[test]
fn a_closing_end_answers_ever_fewer_packets() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let now = pair.now;
    pair.client(ends.client).close(now, 1, b"");
    pair.flush();
    let before = pair.network.counts(Direction::ToServer).sent;
    pair.server(ends.server).ping();
    // The CONNECTION_CLOSE frames are lost, and the client receives packets that it cannot open.
    pair.network.conditions(Direction::ToServer).down = true;
    pair.network.conditions(Direction::ToClient).jitter = Duration::from_millis(5);
    let (source, destination) = (pair.server.address, pair.client.address);
    let cid = pair.client(ends.client).handshake_cid();
    for _ in 0..1000 {
        let mut bytes = vec![0x40];
        bytes.extend_from_slice(&cid);
        bytes.resize(60, 7);
        let datagram = Datagram {
            source,
            destination,
            ecn: None,
            bytes,
        };
        pair.network.inject(now, Direction::ToClient, datagram);
    }
    pair.drive(Duration::from_millis(30));
    let answers = pair.network.counts(Direction::ToServer).sent - before;
    assert!((5..=11).contains(&answers), "{answers} answers to 1000");
}

#[test]
fn a_draining_end_sends_nothing() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let now = pair.now;
    pair.client(ends.client).close(now, 1, b"");
    pair.drive(Duration::from_millis(15));
    assert!(server_end(&pair, ends.server).is_some());
    assert!(!pair.server(ends.server).is_drained());
    let before = pair.network.counts(Direction::ToClient).sent;
    assert!(pair.server(ends.server).open(Dir::Uni).is_none());
    pair.server(ends.server).ping();
    pair.drive(Duration::from_secs(5));
    assert_eq!(pair.network.counts(Direction::ToClient).sent, before);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
}

#[test]
fn a_close_at_any_time_of_the_handshake_ends_both_connections() {
    for wait in [0, 5, 12, 21, 25] {
        let mut pair = Pair::new();
        let client = pair.connect();
        pair.drive(Duration::from_millis(wait));
        let now = pair.now;
        pair.client(client).close(now, 3, b"no more");
        pair.drive(Duration::from_secs(10));
        assert_eq!(pair.client.endpoint.open_connections(), 0, "{wait} ms");
        assert_eq!(pair.server.endpoint.open_connections(), 0, "{wait} ms");
    }
}
