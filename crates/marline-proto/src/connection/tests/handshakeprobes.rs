//! Probes during a handshake, and the discarding of keys.

use super::*;
use crate::level::EncryptionLevel;

#[test]
fn a_client_discards_initial_keys_when_it_sends_handshake_packets() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let done = pair.drive_until(TIMEOUT, |pair| {
        pair.client(client).establishment.one_rtt().is_some()
    });
    assert!(done);
    pair.flush();
    let establishment = &pair.client(client).establishment;
    assert!(!establishment.has_keys(EncryptionLevel::Initial));
    let has_handshake = establishment.has_keys(EncryptionLevel::Handshake);
    assert!(has_handshake, "the handshake is not confirmed");
}

#[test]
fn one_probe_timeout_retransmits_the_whole_flight_of_the_server() {
    let initial_rtt = Duration::from_millis(100);
    let mut pair = Pair::with(PairConfig {
        client: TransportConfig {
            first_flight_copy: None,
            ..TransportConfig::default()
        },
        server: TransportConfig {
            initial_rtt,
            handshake_retransmission: false,
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let began = pair.now;
    let client = pair.connect();
    pair.network.conditions(Direction::ToClient).down = true;
    assert!(pair.drive_until(TIMEOUT, |pair| !pair.server.accepted.is_empty()));
    pair.flush();
    pair.network.conditions(Direction::ToClient).down = false;

    let done = pair.drive_until(TIMEOUT, |pair| {
        pair.client(client).establishment.one_rtt().is_some()
    });
    assert!(done);
    // One round trip, and a probe timeout without an RTT sample (RFC 9002, section 6.2.2).
    assert_eq!(
        pair.now - began,
        Duration::from_millis(20) + 3 * initial_rtt
    );
}

#[test]
fn one_probe_timeout_retransmits_the_finished_message_of_the_client() {
    let mut pair = Pair::new();
    let client = pair.connect();
    pair.drive(Duration::from_millis(15));
    pair.network.conditions(Direction::ToServer).down = true;
    let done = pair.drive_until(TIMEOUT, |pair| {
        pair.client(client).establishment.one_rtt().is_some()
    });
    assert!(done);
    pair.flush();
    pair.network.conditions(Direction::ToServer).down = false;
    let lost = pair.now;

    let done = pair.drive_until(TIMEOUT, |pair| pair.client(client).is_confirmed());
    assert!(done);
    // A probe timeout with one RTT sample of 20 ms is three times that; then a round trip.
    assert!(
        pair.now - lost <= Duration::from_millis(85),
        "{:?}",
        pair.now - lost
    );
}

#[test]
fn the_second_probe_of_a_client_also_contains_its_first_flight() {
    let mut pair = Pair::with(PairConfig {
        client: TransportConfig {
            first_flight_copy: None,
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let client = pair.connect();
    pair.network.conditions(Direction::ToServer).down = true;
    pair.flush();
    pair.now = pair.client(client).poll_timeout().expect("a probe timeout");
    let now = pair.now;
    pair.client(client).handle_timeout(now);
    let probes: Vec<_> = std::iter::from_fn(|| {
        let mut bytes = Vec::new();
        let transmit = pair.client(client).poll_transmit(now, 1, &mut bytes)?;
        Some((transmit, bytes))
    })
    .collect();
    let [_, (transmit, bytes)] = &probes[..] else {
        panic!("{} probes", probes.len());
    };
    let second = Datagram {
        source: transmit.tuple.local,
        destination: transmit.tuple.remote,
        ecn: None,
        bytes: bytes.clone(),
    };
    pair.network.conditions(Direction::ToServer).down = false;
    pair.network.inject(now, Direction::ToServer, second);
    pair.drive(Duration::from_millis(50));
    assert!(pair.client(client).establishment.one_rtt().is_some());
}
