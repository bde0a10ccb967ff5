use super::*;
use crate::endpoint::ConnectionHandle;

const LIMITS: ClientLimits = ClientLimits {
    max_connections_per_address: 3,
    max_connections_per_prefix: 5,
    max_handshakes_per_address: 2,
    max_handshakes_per_prefix: 3,
    evict_idle: true,
};

fn at(number: usize) -> Location {
    Location {
        worker: 0,
        handle: ConnectionHandle(number),
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn limits_hold_for_the_address_and_for_the_prefix() {
    let mut clients = Clients::default();
    let mut all = Vec::new();
    for text in ["192.0.2.1", "192.0.2.1", "192.0.2.2"] {
        assert_eq!(clients.exceeded(&LIMITS, ip(text), true), None);
        all.push(clients.add(ip(text), HandshakeProgress::Validated));
    }
    let exceeded = |clients: &Clients, text| clients.exceeded(&LIMITS, ip(text), true);
    assert_eq!(
        exceeded(&clients, "192.0.2.1"),
        Some(Refusal::HandshakesOfAddress)
    );
    assert_eq!(
        exceeded(&clients, "192.0.2.2"),
        Some(Refusal::HandshakesOfPrefix)
    );
    assert_eq!(exceeded(&clients, "192.0.3.1"), None);
    for client in &all {
        clients.on_connected(*client);
    }
    for text in ["192.0.2.1", "192.0.2.2"] {
        let client = clients.add(ip(text), HandshakeProgress::Validated);
        clients.on_connected(client);
        all.push(client);
    }
    assert_eq!(
        exceeded(&clients, "192.0.2.1"),
        Some(Refusal::ConnectionsOfAddress)
    );
    assert_eq!(
        exceeded(&clients, "192.0.2.9"),
        Some(Refusal::ConnectionsOfPrefix)
    );
    all.iter().for_each(|client| clients.remove(*client));
    assert!(clients.is_empty());
}

#[test]
fn handshakes_of_forged_addresses_do_not_count_against_validated_clients() {
    let mut clients = Clients::default();
    for _ in 0..2 {
        clients.add(ip("192.0.2.1"), HandshakeProgress::Unvalidated);
    }
    assert_eq!(
        clients.exceeded(&LIMITS, ip("192.0.2.1"), false),
        Some(Refusal::HandshakesOfAddress)
    );
    assert_eq!(clients.exceeded(&LIMITS, ip("192.0.2.1"), true), None);
}

#[test]
fn the_connection_that_is_idle_longest_ends_for_a_client_of_its_network_or_of_a_smaller_one() {
    let mut clients = Clients::default();
    let addresses = ["192.0.2.1", "192.0.2.2", "198.51.100.1"];
    let mut all: Vec<ClientId> = addresses
        .iter()
        .map(|text| clients.add(ip(text), HandshakeProgress::Connected))
        .collect();
    let victim = |clients: &Clients, text| {
        let idle = clients.longest_idle_for(ip(text));
        idle.map(|idle| idle.at.handle.0)
    };
    assert_eq!(victim(&clients, "192.0.2.1"), None);
    for number in [1, 0, 2] {
        clients.set_idle(all[number], at(number), true);
    }
    assert_eq!(victim(&clients, "192.0.2.1"), Some(0));
    assert_eq!(victim(&clients, "192.0.2.9"), Some(1));
    assert_eq!(victim(&clients, "198.51.100.9"), Some(2));
    assert_eq!(victim(&clients, "203.0.113.1"), Some(1));
    clients.set_idle(all[1], at(1), false);
    assert_eq!(victim(&clients, "203.0.113.1"), Some(0));
    clients.remove(all.remove(0));
    assert_eq!(
        victim(&clients, "203.0.113.1"),
        None,
        "no network has more than one"
    );
    all.iter().for_each(|client| clients.remove(*client));
    assert!(clients.is_empty());
}
