//! Version 2 and version negotiation (RFC 9369; RFC 9368).

use std::sync::{Arc, Mutex};

use marline_wire::packet::{self, Packet, VERSION_1, VERSION_2, VersionNegotiation, expand};

use marline_wire::PathId;

use super::*;
use crate::crypto::{Sealing, TAG_LEN, initial_keys, open, seal, unprotect};
use crate::streams::StreamEvent;

const HALF_RTT: Duration = Duration::from_millis(10);

/// A pair whose server changes connections to `version`.
fn preferring(version: Version, config: PairConfig) -> Pair {
    Pair::with(PairConfig {
        adjust_server: Box::new(move |server| server.preferred_version = Some(version)),
        ..config
    })
}

/// Makes clients start with `version`.
fn begin_with(pair: &mut Pair, version: Version) {
    pair.client_config.version = version.number();
    pair.client_config.versions = Versions::preferring(version);
}

fn versions_of(pair: &mut Pair, ends: Ends) -> [u32; 2] {
    [
        pair.client(ends.client).stats().version,
        pair.server(ends.server).stats().version,
    ]
}

/// The datagrams of both directions.
type Recorded = Arc<Mutex<Vec<(Direction, Vec<u8>)>>>;

/// Records all datagrams from now on.
fn record(pair: &mut Pair) -> Recorded {
    let recorded = Recorded::default();
    let log = Arc::clone(&recorded);
    pair.network.filter = Some(Box::new(move |direction, datagram: &Datagram| {
        let entry = (direction, datagram.bytes.clone());
        log.lock().expect("one thread").push(entry);
        false
    }));
    recorded
}

/// The versions of the first long headers in datagrams of one direction, without repetitions.
fn versions_on_wire(recorded: &Recorded, of: Direction) -> Vec<u32> {
    let mut versions = Vec::new();
    for (direction, bytes) in recorded.lock().expect("one thread").iter() {
        if *direction == of && bytes[0] & 0x80 != 0 {
            versions.push(u32::from_be_bytes(bytes[1..5].try_into().expect("4 bytes")));
        }
    }
    versions.dedup();
    versions
}

fn closed_with(connection: &Connection, code: ErrorCode) {
    match connection.error() {
        Some(ConnectionError::Transport(error)) => assert_eq!(error.code, code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_changes_the_version_without_another_round_trip() {
    for (first, second) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        for cipher in [
            None,
            Some(Cipher::Aes256Gcm),
            Some(Cipher::ChaCha20Poly1305),
        ] {
            let config = PairConfig {
                cipher,
                ..PairConfig::default()
            };
            let mut pair = preferring(second, config);
            begin_with(&mut pair, first);
            let recorded = record(&mut pair);
            let began = pair.now;
            let ends = pair.establish();
            assert_eq!(pair.now - began, HALF_RTT * 4, "two round trips");
            assert_eq!(versions_of(&mut pair, ends), [second.number(); 2]);
            let sent = versions_on_wire(&recorded, Direction::ToServer);
            assert_eq!(sent, [first.number(), second.number()]);
            let answers = versions_on_wire(&recorded, Direction::ToClient);
            assert_eq!(answers, [second.number()]);
            upload(&mut pair, ends, &pattern(100_000));
            download(&mut pair, ends, &pattern(100_000));
        }
    }
}

#[test]
fn keys_are_updated_after_a_change_of_version() {
    let frequent = || TransportConfig {
        key_update_interval: Some(20),
        ..TransportConfig::default()
    };
    let config = PairConfig {
        client: frequent(),
        server: frequent(),
        ..PairConfig::default()
    };
    let mut pair = preferring(Version::V2, config);
    let ends = pair.establish();
    upload(&mut pair, ends, &pattern(1_000_000));
    download(&mut pair, ends, &pattern(1_000_000));
    let dropped = pair.client(ends.client).stats().packets_dropped;
    assert_eq!(dropped, 0);
}

#[test]
fn both_ends_keep_the_version_of_the_client_without_a_preference() {
    for version in Version::ALL {
        let mut pair = Pair::new();
        begin_with(&mut pair, version);
        let recorded = record(&mut pair);
        let ends = pair.establish();
        assert_eq!(versions_of(&mut pair, ends), [version.number(); 2]);
        for direction in [Direction::ToServer, Direction::ToClient] {
            let sent = versions_on_wire(&recorded, direction);
            assert_eq!(sent, [version.number()]);
        }
        upload(&mut pair, ends, &pattern(100_000));
    }
}

#[test]
fn a_client_that_offers_one_version_keeps_it() {
    let mut pair = preferring(Version::V2, PairConfig::default());
    pair.client_config.versions = Versions::only(Version::V1);
    let ends = pair.establish();
    assert_eq!(versions_of(&mut pair, ends), [VERSION_1; 2]);
}

#[test]
fn a_change_of_version_survives_loss_and_corruption() {
    for seed in 0..30 {
        let config = PairConfig {
            client: patient(),
            server: patient(),
            seed,
            ..PairConfig::default()
        };
        let mut pair = preferring(Version::V2, config);
        pair.network.set(Conditions {
            loss: 0.2,
            corrupt: 0.1,
            jitter: Duration::from_millis(20),
            duplicate: 0.1,
            ..Conditions::default()
        });
        let ends = pair.establish();
        assert_eq!(versions_of(&mut pair, ends), [VERSION_2; 2]);
        upload(&mut pair, ends, &pattern(20_000));
    }
}

#[test]
fn a_retry_has_the_version_of_the_client_and_the_change_follows() {
    let mut pair = preferring(Version::V2, PairConfig::default());
    pair.reconfigure_server(|server, _| server.retry = RetryPolicy::Always);
    let recorded = record(&mut pair);
    let ends = pair.establish();
    assert_eq!(versions_of(&mut pair, ends), [VERSION_2; 2]);
    let answers = versions_on_wire(&recorded, Direction::ToClient);
    assert_eq!(answers, [VERSION_1, VERSION_2]);
}

#[test]
fn a_retry_of_version_2_is_accepted() {
    let mut pair = Pair::new();
    begin_with(&mut pair, Version::V2);
    pair.reconfigure_server(|server, _| server.retry = RetryPolicy::Always);
    let ends = pair.establish();
    assert_eq!(versions_of(&mut pair, ends), [VERSION_2; 2]);
}

#[test]
fn version_negotiation_lists_what_the_server_supports_and_a_reserved_version() {
    let mut pair = Pair::new();
    pair.client_config.version = 0x5a6a_7a8a;
    let recorded = record(&mut pair);
    pair.connect();
    pair.drive(HALF_RTT + HALF_RTT / 2);
    let recorded = recorded.lock().expect("one thread");
    let answer = recorded.iter().find(|(to, _)| *to == Direction::ToClient);
    let (_, bytes) = answer.expect("an answer");
    let Ok(Packet::VersionNegotiation(packet)) = packet::parse(bytes, 8, false) else {
        panic!("a Version Negotiation packet");
    };
    let versions: Vec<u32> = packet.versions().collect();
    assert_eq!(versions[..2], [VERSION_1, VERSION_2]);
    assert_eq!(versions[2] & 0x0f0f_0f0f, 0x0a0a_0a0a);
    assert_eq!(versions.len(), 3);
}

#[test]
fn a_client_begins_again_with_version_1_at_a_server_that_knows_no_other() {
    let mut pair = Pair::new();
    pair.reconfigure_server(|server, _| server.versions = Versions::only(Version::V1));
    begin_with(&mut pair, Version::V2);
    let began = pair.now;
    let ends = pair.establish();
    assert_eq!(pair.now - began, HALF_RTT * 6, "one more round trip");
    assert_eq!(versions_of(&mut pair, ends), [VERSION_1; 2]);
    upload(&mut pair, ends, &pattern(100_000));
}

/// Sends the client a Version Negotiation packet, as an attacker who saw its first packet can.
fn forge_negotiation(pair: &mut Pair, client: ConnectionHandle, versions: &[u32]) {
    let connection = pair.client(client);
    let ours = connection.handshake_cid();
    let theirs = connection.original_destination();
    let mut offer = Vec::new();
    VersionNegotiation::encode(&ours, &theirs, versions, 0, &mut offer);
    pair.deliver(Direction::ToClient, offer);
}

#[test]
fn a_forged_version_negotiation_is_a_version_negotiation_error() {
    let mut pair = Pair::new();
    begin_with(&mut pair, Version::V2);
    let client = pair.connect();
    forge_negotiation(&mut pair, client, &[VERSION_1]);
    pair.drive(Duration::from_millis(25));
    assert_eq!(pair.client(client).version(), VERSION_1);
    closed_with(pair.client(client), ErrorCode::VERSION_NEGOTIATION_ERROR);
}

#[test]
fn a_client_that_would_have_chosen_the_same_version_accepts_it() {
    let mut pair = Pair::new();
    pair.client_config.version = VERSION_2;
    pair.client_config.versions = Versions::preferring(Version::V1);
    let client = pair.connect();
    forge_negotiation(&mut pair, client, &[VERSION_1]);
    pair.drive(Duration::from_millis(100));
    assert!(pair.client(client).error().is_none());
    assert!(!pair.client(client).is_handshaking());
}

#[test]
fn a_second_version_negotiation_is_ignored() {
    let mut pair = Pair::new();
    pair.client_config.version = 0x5a6a_7a8a;
    let client = pair.connect();
    forge_negotiation(&mut pair, client, &[VERSION_1]);
    forge_negotiation(&mut pair, client, &[VERSION_2]);
    assert_eq!(pair.client(client).version(), VERSION_1);
    pair.drive(Duration::from_millis(100));
    assert!(!pair.client(client).is_handshaking());
}

/// Protects an Initial packet again, as one of another version, which anyone who sees it can do.
fn rewrite(bytes: &[u8], sender: Side, key_source: ConnectionId, to: Version) -> Vec<u8> {
    let mut packet = bytes.to_vec();
    let Ok(Packet::Protected(header)) = packet::parse(&packet, 8, true) else {
        panic!("a protected packet");
    };
    packet.truncate(header.len);
    let from = header.version.expect("a long header");
    let remote = initial_keys(from, &key_source, sender.peer()).remote;
    let found = unprotect(&*remote.header, &mut packet, header.number_offset).expect("a sample");
    let number = expand(None, found.truncated, found.number_len);
    let payload_offset = header.number_offset + found.number_len;
    open(
        &*remote.packet,
        PathId::INITIAL,
        number,
        &mut packet,
        payload_offset,
    )
    .expect("an authentic packet");
    packet.truncate(packet.len() - TAG_LEN);
    packet[1..5].copy_from_slice(&to.number().to_be_bytes());
    // The types of the Initial packets of both versions.
    packet[0] = packet[0] & !0x30 | if to == Version::V2 { 0x10 } else { 0 };
    let sealing = Sealing {
        path_id: PathId::INITIAL,
        number,
        packet_start: 0,
        number_offset: header.number_offset,
        payload_offset,
    };
    seal(
        &initial_keys(to, &key_source, sender).local,
        sealing,
        &mut packet,
    );
    packet.resize(bytes.len().max(packet.len()), 0);
    packet
}

/// Drops the packets of an end, and returns them.
fn intercept(pair: &mut Pair, from: Direction) -> Recorded {
    let recorded = Recorded::default();
    let log = Arc::clone(&recorded);
    pair.network.filter = Some(Box::new(move |direction, datagram: &Datagram| {
        let is_taken = direction == from;
        if is_taken {
            let entry = (direction, datagram.bytes.clone());
            log.lock().expect("one thread").push(entry);
        }
        is_taken
    }));
    recorded
}

#[test]
fn a_first_flight_in_another_version_than_the_chosen_one_is_a_version_negotiation_error() {
    for (chosen, forged) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let mut pair = preferring(chosen, PairConfig::default());
        begin_with(&mut pair, chosen);
        let client = pair.connect();
        let key_source = pair.client(client).original_destination();
        let flight = intercept(&mut pair, Direction::ToServer);
        pair.flush();
        for (_, bytes) in std::mem::take(&mut *flight.lock().expect("one thread")) {
            let bytes = rewrite(&bytes, Side::Client, key_source, forged);
            pair.deliver(Direction::ToServer, bytes);
        }
        let server = pair.server.accepted.pop_front().expect("accepted");
        closed_with(pair.server(server), ErrorCode::VERSION_NEGOTIATION_ERROR);
    }
}

#[test]
fn a_server_packet_in_a_forged_version_does_not_lead_to_a_connection() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let key_source = pair.client(client).original_destination();
    let flight = intercept(&mut pair, Direction::ToClient);
    pair.drive(HALF_RTT);
    let flight = std::mem::take(&mut *flight.lock().expect("one thread"));
    for (index, (_, bytes)) in flight.into_iter().enumerate() {
        let bytes = match index {
            0 => rewrite(&bytes, Side::Server, key_source, Version::V2),
            _ => bytes,
        };
        pair.deliver(Direction::ToClient, bytes);
    }
    assert_eq!(pair.client(client).version(), VERSION_2, "it was misled");
    pair.network.filter = None;
    pair.drive(Duration::from_secs(30));
    let connected = pair
        .client
        .events
        .iter()
        .any(|(_, event)| matches!(event, Event::Connected));
    assert!(!connected);
}

fn early(config: PairConfig) -> PairConfig {
    PairConfig {
        zero_rtt: true,
        ..config
    }
}

/// The outcome of a connection of a returning client.
struct Return {
    /// Whether the client could send 0-RTT data.
    offered: bool,
    /// Whether the server accepted it.
    accepted: bool,
    resumed: bool,
    /// Whether the server received its stream.
    arrived: bool,
    version: u32,
}

/// Connects, sends 0-RTT data if it can, and closes.
fn come_back(pair: &mut Pair) -> Return {
    let client = pair.connect();
    let offered = pair.client(client).has_zero_rtt();
    if offered {
        let id = pair.client(client).open(Dir::Uni).expect("remembered");
        pair.client(client).write(id, b"early").expect("open");
    }
    pair.drive(Duration::from_millis(200));
    let mut events = pair.server.events.iter();
    let opened = |event: &Event| matches!(event, Event::Stream(StreamEvent::Opened(Dir::Uni)));
    let arrived = events.any(|(_, event)| opened(event));
    let connection = pair.client(client);
    let back = Return {
        offered,
        accepted: connection.is_early_data_accepted(),
        resumed: connection.is_resumed(),
        arrived,
        version: connection.version(),
    };
    close(pair, client);
    pair.server.accepted.clear();
    back
}

#[test]
fn the_next_connection_begins_in_the_negotiated_version_and_resumes_its_session() {
    let mut pair = preferring(Version::V2, early(PairConfig::default()));
    assert_eq!(come_back(&mut pair).version, VERSION_2);
    let recorded = record(&mut pair);
    let back = come_back(&mut pair);
    assert!(back.offered && back.accepted && back.resumed);
    assert_eq!(back.version, VERSION_2);
    let sent = versions_on_wire(&recorded, Direction::ToServer);
    assert_eq!(sent, [VERSION_2]);
}

#[test]
fn a_session_is_not_resumed_in_another_version() {
    for (first, second) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let mut pair = Pair::with(early(PairConfig::default()));
        begin_with(&mut pair, first);
        come_back(&mut pair);
        assert!(come_back(&mut pair).resumed, "in the same version");
        begin_with(&mut pair, second);
        pair.client_config.tokens = Arc::default();
        let back = come_back(&mut pair);
        assert!(!back.offered && !back.resumed);
        assert_eq!(back.version, second.number());
    }
}

#[test]
fn a_client_with_early_data_keeps_its_version() {
    let mut pair = Pair::with(early(PairConfig::default()));
    come_back(&mut pair);
    pair.reconfigure_server(|server, _| server.preferred_version = Some(Version::V2));
    let back = come_back(&mut pair);
    assert!(back.offered && back.accepted);
    assert_eq!(back.version, VERSION_1);
}

#[test]
fn early_data_of_a_refused_version_is_sent_again() {
    let mut pair = Pair::with(early(PairConfig::default()));
    begin_with(&mut pair, Version::V2);
    come_back(&mut pair);
    pair.reconfigure_server(|server, _| server.versions = Versions::only(Version::V1));
    let back = come_back(&mut pair);
    assert!(back.offered && !back.accepted && !back.resumed);
    assert_eq!(back.version, VERSION_1);
    assert!(back.arrived, "the stream arrived in 1-RTT packets");
}
