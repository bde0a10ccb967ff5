//! Limits on the use of a server by clients of one network.

use super::*;
use crate::config::ClientLimits;

const LIMITS: ClientLimits = ClientLimits {
    max_connections_per_address: 4,
    max_connections_per_prefix: 6,
    max_handshakes_per_address: 3,
    max_handshakes_per_prefix: 5,
    evict_idle: true,
};

fn limited(max_connections: usize) -> Pair {
    Pair::with(PairConfig {
        clients: LIMITS,
        adjust_server: Box::new(move |server| server.max_connections = max_connections),
        ..PairConfig::default()
    })
}

fn connect_from(pair: &mut Pair, address: &str) -> ConnectionHandle {
    pair.client.address = address.parse().unwrap();
    // No token of an earlier connection validates the address.
    pair.client_config.tokens = Arc::default();
    let client = pair.connect();
    pair.drive(Duration::from_millis(500));
    client
}

fn is_refused(pair: &mut Pair, client: ConnectionHandle) -> bool {
    pair.client.events.iter().any(|(handle, event)| {
        let is_refusal = matches!(
            event,
            Event::Closed(ConnectionError::PeerTransport {
                code: ErrorCode::CONNECTION_REFUSED,
                ..
            })
        );
        *handle == client && is_refusal
    })
}

#[test]
fn an_address_at_its_limit_is_refused_after_a_retry_while_others_connect() {
    let mut pair = limited(100);
    for _ in 0..4 {
        connect_from(&mut pair, "192.0.2.1:51000");
    }
    let fifth = connect_from(&mut pair, "192.0.2.1:51001");
    assert!(is_refused(&mut pair, fifth));
    let stats = pair.server.endpoint.stats();
    assert_eq!(stats.refused.connections_of_address, 1);
    assert_eq!((stats.retries, stats.accepted), (1, 4));
    for address in ["192.0.2.8:50001", "192.0.2.9:50001", "192.0.3.1:50001"] {
        connect_from(&mut pair, address);
    }
    assert_eq!(pair.server.endpoint.open_connections(), 7);
    let of_prefix = connect_from(&mut pair, "192.0.2.10:50001");
    assert!(is_refused(&mut pair, of_prefix));
    assert_eq!(
        pair.server.endpoint.stats().refused.connections_of_prefix,
        1
    );
}

#[test]
fn handshakes_with_forged_addresses_do_not_keep_the_true_client_out() {
    let mut pair = limited(100);
    pair.client.address = "192.0.2.1:51000".parse().unwrap();
    pair.network.conditions(Direction::ToClient).down = true;
    for _ in 0..50 {
        pair.connect();
    }
    pair.drive(Duration::from_millis(15));
    assert_eq!(pair.server.endpoint.open_connections(), 3);
    pair.network.conditions(Direction::ToClient).down = false;
    pair.client.connections.clear();
    let client = connect_from(&mut pair, "192.0.2.1:52000");
    assert!(!pair.client(client).is_handshaking(), "validated by Retry");
    assert_eq!(pair.server.endpoint.open_connections(), 4);
}

#[test]
fn a_full_server_closes_the_connection_that_is_idle_longest_for_a_client_of_the_same_address() {
    let mut pair = limited(2);
    let first = connect_from(&mut pair, "192.0.2.1:51000");
    let busy = pair.client(first).open(Dir::Bi).unwrap();
    pair.client(first).write(busy, b"request").unwrap();
    pair.drive(Duration::from_millis(100));
    connect_from(&mut pair, "192.0.2.1:51001");
    let third = connect_from(&mut pair, "192.0.2.1:51002");
    assert!(!pair.client(third).is_handshaking());
    let ends: Vec<ConnectionError> = (pair.server.events.iter())
        .filter_map(|(_, event)| match event {
            Event::Closed(error) => Some(error.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [ConnectionError::Evicted]);
    assert_eq!(pair.server.endpoint.stats().evicted, 1);
    assert!(!pair.client(first).is_closed(), "it has a stream open");
    pair.drive(Duration::from_secs(5));
    assert_eq!(pair.server.endpoint.open_connections(), 2);
}

#[test]
fn a_full_server_refuses_a_client_if_no_connection_is_idle() {
    let mut pair = limited(1);
    let first = connect_from(&mut pair, "192.0.2.1:51000");
    let busy = pair.client(first).open(Dir::Bi).unwrap();
    pair.client(first).write(busy, b"request").unwrap();
    pair.drive(Duration::from_millis(100));
    let second = connect_from(&mut pair, "192.0.2.1:51001");
    assert!(is_refused(&mut pair, second));
    assert_eq!(pair.server.endpoint.stats().refused.connections, 1);
}

#[test]
fn a_full_server_makes_place_for_a_new_network_at_the_cost_of_the_largest() {
    let mut pair = limited(3);
    connect_from(&mut pair, "198.51.100.1:50001");
    connect_from(&mut pair, "192.0.2.1:50001");
    connect_from(&mut pair, "192.0.2.2:50001");
    let new = connect_from(&mut pair, "203.0.113.1:50001");
    assert!(!pair.client(new).is_handshaking());
    let another = connect_from(&mut pair, "203.0.114.1:50001");
    assert!(is_refused(&mut pair, another), "every network has one");
}
