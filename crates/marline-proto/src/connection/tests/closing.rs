//! The end, agreed on or not.

use super::*;

#[test]
fn a_close_reports_its_reason_to_the_peer_and_both_ends_drop_the_connection() {
    let mut pair = Pair::new();
    let (client, server) = pair.establish();
    let now = pair.now;
    pair.client(client).close(now, 7, b"done");
    pair.drive(Duration::from_secs(5));
    let reason = Bytes::from_static(b"done");
    assert_eq!(
        server_end(&pair, server),
        Some(ConnectionError::PeerApplication { code: 7, reason })
    );
    assert_eq!(
        client_end(&pair, client),
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
    let (client, server) = ends;
    let mut lost = false;
    pair.network.filter = Some(Box::new(move |direction, _| {
        direction == Direction::ToServer && !std::mem::replace(&mut lost, true)
    }));
    let now = pair.now;
    pair.client(client).close(now, 1, b"");
    pair.drive(Duration::from_millis(100));
    let end = server_end(&pair, server);
    assert!(
        matches!(end, Some(ConnectionError::PeerApplication { code: 1, .. })),
        "{end:?}"
    );
}

#[test]
fn a_closing_end_answers_ever_fewer_packets() {
    let mut pair = Pair::new();
    let (client, server) = pair.establish();
    let now = pair.now;
    pair.client(client).close(now, 1, b"");
    pair.flush();
    let before = pair.network.counts(Direction::ToServer).0;
    pair.server(server).ping();
    // The server never hears of it and the client hears nothing but echoes of the past.
    pair.network.conditions(Direction::ToServer).down = true;
    pair.network.conditions(Direction::ToClient).jitter = Duration::from_millis(5);
    let addresses = (pair.server.address, pair.client.address);
    let cid = pair.client(client).handshake_cid();
    for _ in 0..1000 {
        let mut bytes = vec![0x40];
        bytes.extend_from_slice(&cid);
        bytes.resize(60, 7);
        let datagram = Datagram {
            source: addresses.0,
            destination: addresses.1,
            ecn: None,
            bytes,
        };
        pair.network.inject(now, Direction::ToClient, datagram);
    }
    pair.drive(Duration::from_millis(30));
    let answers = pair.network.counts(Direction::ToServer).0 - before;
    assert!((5..=11).contains(&answers), "{answers} answers to 1000");
}

#[test]
fn a_draining_end_sends_nothing() {
    let mut pair = Pair::new();
    let (client, server) = pair.establish();
    let now = pair.now;
    pair.client(client).close(now, 1, b"");
    pair.drive(Duration::from_millis(15));
    assert!(server_end(&pair, server).is_some());
    assert!(!pair.server(server).is_drained());
    let before = pair.network.counts(Direction::ToClient).0;
    assert!(pair.server(server).open(Dir::Uni).is_none());
    pair.server(server).ping();
    pair.drive(Duration::from_secs(5));
    assert_eq!(pair.network.counts(Direction::ToClient).0, before);
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
