//! Stateless resets of a server that lost its state (RFC 9000, section 10.3).

use super::*;

#[test]
fn a_stateless_reset_of_a_restarted_server_ends_the_connection() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(10_000));
    pair.restart_server();
    pair.client(ends.client).ping();
    pair.drive(Duration::from_millis(25));
    assert_eq!(client_end(&pair, ends.client), Some(ConnectionError::Reset));
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    pair.client.events.clear();
    pair.establish();
}

#[test]
fn a_stateless_reset_is_recognized_after_a_migration() {
    let mut pair = Pair::new();
    let client = pair.establish().client;
    let now = pair.now;
    let other = "203.0.113.1:50000".parse().unwrap();
    pair.client(client).rebind(now, other);
    pair.drive(Duration::from_secs(5));
    pair.restart_server();
    pair.client(client).ping();
    pair.drive(Duration::from_millis(25));
    assert_eq!(client_end(&pair, client), Some(ConnectionError::Reset));
}

#[test]
fn a_stateless_reset_with_a_guessed_token_is_ignored() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let id = pair.client(ends.client).handshake_cid();
    for guess in 0..100u8 {
        let mut bytes = vec![0x40 | guess & 0x3f];
        bytes.extend_from_slice(&id);
        bytes.resize(60, guess);
        let datagram = Datagram {
            source: pair.server.address,
            destination: pair.client.address,
            ecn: None,
            bytes,
        };
        pair.network.inject(pair.now, Direction::ToClient, datagram);
    }
    pair.drive(Duration::from_secs(1));
    download(&mut pair, ends, &pattern(10_000));
}
