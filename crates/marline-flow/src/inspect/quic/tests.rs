use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use marline_proto::testing::{Datagram, Pair, PairConfig, SERVER_NAME, TestIdentity};
use marline_proto::{
    Cipher, ClientConfig, RetryPolicy, ServerConfig, TlsClientConfig, crypto_provider,
};
use marline_wire::frame::Crypto;
use marline_wire::packet::{
    LongHeader, LongType, Packet, ProtectedKind, VersionNegotiation, parse, patch_length, truncate,
};
use marline_wire::{ConnectionId, Version};
use proptest::prelude::*;

use crate::exporter::Sources;
use crate::keylog::KeyLog;
use crate::record::Record;
use crate::table::Options;
use crate::testing::{Run, address, client_hello, udp};

/// The secrets that an endpoint logs, in the format of key logs.
#[derive(Debug, Default)]
struct Secrets(Mutex<String>);

impl rustls::KeyLog for Secrets {
    fn log(&self, label: &str, random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        let mut text = self.0.lock().unwrap();
        writeln!(text, "{label} {} {}", hex(random), hex(secret)).unwrap();
    }
}

/// The datagrams of two endpoints, and the key log of the server.
struct Handshake {
    datagrams: Vec<Datagram>,
    secrets: String,
}

impl Handshake {
    /// A handshake of a client that begins with `version` and offers nothing but HTTP/3.
    fn of(version: Version, change_server: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::with(Pair::new(), version, change_server)
    }

    fn with(
        mut pair: Pair,
        version: Version,
        change_server: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let identity = TestIdentity::new(&[SERVER_NAME]);
        let secrets = Arc::new(Secrets::default());
        pair.reconfigure_server(|config, tls| {
            *tls = identity.server(&[b"h3"], None);
            tls.key_log = Arc::clone(&secrets) as _;
            change_server(config);
        });
        let tls = TlsClientConfig::new(Arc::new(identity.client(&[b"h3"], None)));
        pair.client_config = ClientConfig::new(tls.unwrap());
        pair.client_config.version = version.number();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sent);
        pair.network.filter = Some(Box::new(move |_, datagram| {
            seen.lock().unwrap().push(datagram.clone());
            false
        }));
        pair.establish();
        pair.drive(Duration::from_millis(100));
        let datagrams = std::mem::take(&mut *sent.lock().unwrap());
        let secrets = secrets.0.lock().unwrap().clone();
        Self { datagrams, secrets }
    }

    /// The index of the Retry packet.
    fn retry(&self) -> Option<usize> {
        self.datagrams
            .iter()
            .position(|datagram| matches!(parse(&datagram.bytes, 0, true), Ok(Packet::Retry(_))))
    }

    fn keys(&self) -> KeyLog {
        let mut keys = KeyLog::default();
        keys.add_from(self.secrets.as_bytes(), "keys.log").unwrap();
        keys
    }
}

/// The record of the flow with these datagrams.
fn record(datagrams: &[Datagram], keys: Option<KeyLog>) -> Record {
    let sources = Sources {
        keys,
        server_log: None,
    };
    let mut run = Run::with(Options::default(), sources);
    for datagram in datagrams {
        run.packet(&udp(datagram.source, datagram.destination, &datagram.bytes));
    }
    let mut records = run.records();
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[test]
fn a_connection_after_a_retry_has_its_name_and_version() {
    for version in Version::ALL {
        let handshake = Handshake::of(version, |server| server.retry = RetryPolicy::Always);
        let retry = handshake.retry().expect("the server asks for a Retry");
        // A capture may begin within the first flight, at the Retry, or after it.
        for first in [0, 1, retry, retry + 1] {
            let datagrams = &handshake.datagrams[first..];
            for (keys, source) in [(None, "handshake"), (Some(handshake.keys()), "keylog")] {
                let record = record(datagrams, keys);
                assert_eq!(record.sni.as_deref(), Some(SERVER_NAME));
                assert_eq!(record.alpn_offered.as_deref(), Some("h3"));
                assert_eq!(record.http_version, Some("h3"));
                assert_eq!(record.label_source, Some(source), "{version} from {first}");
                assert_eq!(record.client.port, 50_000);
            }
        }
    }
}

#[test]
fn a_handshake_whose_version_changes_after_a_retry_is_opened() {
    let handshake = Handshake::of(Version::V1, |server| {
        server.retry = RetryPolicy::Always;
        server.preferred_version = Some(Version::V2);
    });
    assert!(handshake.retry().is_some());
    let is_v2 = |datagram: &Datagram| {
        let parsed = parse(&datagram.bytes, 0, true);
        matches!(parsed, Ok(Packet::Protected(header)) if header.version == Some(Version::V2))
    };
    assert!(handshake.datagrams.iter().any(is_v2));
    let record = record(&handshake.datagrams, Some(handshake.keys()));
    assert_eq!(record.sni.as_deref(), Some(SERVER_NAME));
    assert_eq!(record.alpn_chosen.as_deref(), Some("h3"));
    assert_eq!(record.label_source, Some("keylog"));
}

/// Seals an Initial packet of a client (RFC 9001, section 5).
fn initial(version: Version, dcid: ConnectionId, number: u64, frames: &[u8]) -> Vec<u8> {
    let suite = crypto_provider(Some(Cipher::Aes128Gcm)).cipher_suites[0];
    let suite = suite.tls13().and_then(|suite| suite.quic_suite()).unwrap();
    let rustls_version = match version {
        Version::V1 => rustls::quic::Version::V1,
        Version::V2 => rustls::quic::Version::V2,
    };
    let keys = suite
        .keys(&dcid, rustls::Side::Client, rustls_version)
        .local;
    let header = LongHeader {
        kind: LongType::Initial,
        version: version.number(),
        dcid,
        scid: ConnectionId::EMPTY,
        token: &[],
    };
    let mut packet = Vec::new();
    let end = header.encode(truncate(number, None), false, &mut packet);
    let numbered = packet.len() - end.number_offset + frames.len() + keys.packet.tag_len();
    patch_length(&mut packet, end.length_offset, numbered);
    let mut payload = frames.to_vec();
    let tag = keys.packet.encrypt_in_place(number, &packet, &mut payload);
    packet.extend(payload);
    packet.extend(tag.unwrap().as_ref());
    let sample = packet[end.number_offset + 4..][..keys.header.sample_len()].to_vec();
    let (header, _) = packet.split_at_mut(end.payload_offset);
    let (first, rest) = header.split_first_mut().unwrap();
    let number = &mut rest[end.number_offset - 1..];
    keys.header
        .encrypt_in_place(&sample, first, number)
        .unwrap();
    packet
}

/// The sending of a client's ClientHello.
#[derive(Clone, Debug)]
struct Sending {
    version: Version,
    /// The CRYPTO frames of each packet.
    packets: Vec<Vec<Range<usize>>>,
    /// Whether the packets have descending numbers, as if they had overtaken each other.
    is_reversed: bool,
    /// Whether all packets are in one datagram.
    is_coalesced: bool,
}

impl Sending {
    fn datagrams(&self, hello: &[u8]) -> Vec<Vec<u8>> {
        const PING: u8 = 1;
        const PADDING: u8 = 0;
        let dcid = ConnectionId::new(b"original").unwrap();
        let mut packets = Vec::new();
        for (i, ranges) in self.packets.iter().enumerate() {
            let mut frames = vec![PING];
            for range in ranges {
                let crypto = Crypto {
                    offset: range.start as u64,
                    data: &hello[range.clone()],
                };
                crypto.encode(&mut frames);
                frames.extend([PADDING, PING, PADDING]);
            }
            let number = match self.is_reversed {
                true => self.packets.len() - 1 - i,
                false => i,
            };
            packets.push(initial(self.version, dcid, number as u64, &frames));
        }
        match self.is_coalesced {
            true => vec![packets.concat()],
            false => packets,
        }
    }
}

/// Ranges that together cover `len` bytes, in any order; some overlap.
fn ranges(len: usize) -> impl Strategy<Value = Vec<Range<usize>>> {
    let cuts = prop::collection::vec((1..len, 0usize..40, 0usize..40), 0..24);
    let ranges = cuts.prop_map(move |mut cuts| {
        cuts.sort_unstable();
        let mut start = 0;
        let mut ranges = Vec::new();
        for (end, earlier, later) in cuts.into_iter().chain([(len, 0, 0)]) {
            let wider = usize::saturating_sub(start, earlier)..(end + later).min(len);
            ranges.push(wider);
            start = end;
        }
        ranges
    });
    ranges.prop_shuffle()
}

fn sending(len: usize) -> impl Strategy<Value = Sending> {
    let version = prop::sample::select(&Version::ALL[..]);
    (version, ranges(len), 1usize..8, any::<[bool; 2]>()).prop_map(
        |(version, ranges, packets, [is_reversed, is_coalesced])| Sending {
            version,
            packets: ranges
                .chunks(ranges.len().div_ceil(packets))
                .map(<[_]>::to_vec)
                .collect(),
            is_reversed,
            is_coalesced,
        },
    )
}

const NAME: &str = "www.example.org";
const PROTOCOLS: [&str; 2] = ["h3", "h3-29"];

proptest! {
    #[test]
    fn a_client_hello_is_read_from_crypto_frames_in_any_order(
        sending in sending(client_hello(NAME, &PROTOCOLS).len()),
    ) {
        let hello = client_hello(NAME, &PROTOCOLS);
        let [client, server]: [SocketAddr; 2] = ["10.0.0.1:50000", "192.0.2.1:443"].map(address);
        let mut run = Run::new();
        for datagram in sending.datagrams(&hello) {
            run.packet(&udp(client, server, &datagram));
        }
        let record = run.records().remove(0);
        prop_assert_eq!(record.sni.as_deref(), Some(NAME));
        prop_assert_eq!(record.alpn_offered.as_deref(), Some("h3,h3-29"));
        prop_assert_eq!(record.http_version, None);
    }
}

/// Whether a datagram has a 1-RTT packet.
fn has_data(datagram: &Datagram) -> bool {
    let mut rest = &datagram.bytes[..];
    while let Ok(Packet::Protected(header)) = parse(rest, 0, true) {
        if header.kind == ProtectedKind::Short {
            return true;
        }
        rest = &rest[header.len..];
    }
    false
}

fn is_client(datagram: &Datagram) -> bool {
    datagram.source.port() == 50_000
}

#[test]
fn a_handshake_is_labelled_once_both_ends_have_sent_data() {
    for version in Version::ALL {
        let handshake = Handshake::of(version, |_| {});
        let datagrams = &handshake.datagrams;
        let client = datagrams
            .iter()
            .position(|datagram| is_client(datagram) && has_data(datagram))
            .unwrap();
        let answer = (client..datagrams.len())
            .find(|i| !is_client(&datagrams[*i]) && has_data(&datagrams[*i]))
            .unwrap();
        for seen in 1..=datagrams.len() {
            let label = record(&datagrams[..seen], None).http_version;
            assert_eq!(label, (seen > answer).then_some("h3"), "{seen} datagrams");
        }
        for of_client in [true, false] {
            let one: Vec<_> = datagrams
                .iter()
                .filter(|datagram| is_client(datagram) == of_client)
                .cloned()
                .collect();
            assert_eq!(record(&one, None).http_version, None);
            assert_eq!(record(&one, Some(handshake.keys())).http_version, None);
        }
    }
}

#[test]
fn ends_that_change_their_connection_ids_at_once_complete_the_handshake() {
    let handshake = Handshake::of(Version::V1, |_| {});
    let mut datagrams = handshake.datagrams;
    for datagram in &mut datagrams {
        if matches!(parse(&datagram.bytes, 0, true), Ok(Packet::Protected(header)) if header.kind == ProtectedKind::Short)
        {
            let id = if is_client(datagram) { 0xc1 } else { 0x5e };
            datagram.bytes[1..9].fill(id);
        }
    }
    assert_eq!(record(&datagrams, None).http_version, Some("h3"));
    // Without recurrence they are anything.
    for (i, datagram) in datagrams.iter_mut().enumerate() {
        if datagram.bytes[1..9] == [0x5e; 8] {
            datagram.bytes[1..9].fill(i as u8);
        }
    }
    assert_eq!(record(&datagrams, None).http_version, None);
}

/// Bytes that a client, or its peer, may send without a handshake.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let id = ConnectionId::new(b"original").unwrap();
    let mut negotiation = Vec::new();
    VersionNegotiation::encode(&[], &id, &[0x0a0a_0a0a, 2], 0xc0, &mut negotiation);
    let header = |kind| {
        let mut packet = Vec::new();
        let (scid, token) = (ConnectionId::new(b"server").unwrap(), &[][..]);
        let version = Version::V1.number();
        let header = LongHeader {
            kind,
            version,
            dcid: ConnectionId::EMPTY,
            scid,
            token,
        };
        let end = header.encode(truncate(0, None), false, &mut packet);
        patch_length(&mut packet, end.length_offset, 60);
        packet.resize(packet.len() + 60, 0x5a);
        packet
    };
    let retry = [&[0xf0, 0, 0, 0, 1, 0, 6][..], b"server", b"token", &[7; 16]].concat();
    prop_oneof![
        Just(Vec::new()),
        Just(vec![0; 800]),
        Just(negotiation),
        Just(retry),
        Just(header(LongType::Initial)),
        Just(header(LongType::Handshake)),
        // 1-RTT packets and stateless resets have no more form than this.
        prop::collection::vec(any::<u8>(), 1..200).prop_map(|mut bytes| {
            bytes[0] = bytes[0] & 0x7f | 0x40;
            bytes
        }),
        prop::collection::vec(any::<u8>(), 1..1200),
    ]
}

proptest! {
    #[test]
    fn what_surrounds_an_initial_packet_is_no_handshake(
        turns in prop::collection::vec((any::<bool>(), any::<bool>(), noise()), 1..10),
    ) {
        let [client, server]: [SocketAddr; 2] = ["10.0.0.1:50000", "192.0.2.1:443"].map(address);
        let hello = client_hello(NAME, &PROTOCOLS);
        let mut frames = Vec::new();
        Crypto { offset: 0, data: &hello }.encode(&mut frames);
        let dcid = ConnectionId::new(b"original").unwrap();
        let first = initial(Version::V1, dcid, 0, &frames);
        let mut run = Run::new();
        run.packet(&udp(client, server, &first));
        for (of_client, is_coalesced, noise) in turns {
            let (from, to) = if of_client { (client, server) } else { (server, client) };
            let datagram = match is_coalesced && of_client {
                true => [&first[..], &noise].concat(),
                false => noise,
            };
            run.packet(&udp(from, to, &datagram));
        }
        let record = run.records().remove(0);
        prop_assert_eq!(record.sni.as_deref(), Some(NAME));
        prop_assert_eq!(record.http_version, None);
        prop_assert_eq!(record.label_source, None);
    }

    #[test]
    fn packets_to_other_connection_ids_complete_no_handshake(
        noises in prop::collection::vec(noise(), 12),
    ) {
        // The server's first flight is genuine, and the client sends nothing but its first one again.
        let handshake = Handshake::of(Version::V1, |_| {});
        let first = handshake.datagrams.iter().position(|datagram| !is_client(datagram)).unwrap();
        let mut datagrams = handshake.datagrams[..=first].to_vec();
        for (i, noise) in noises.iter().enumerate() {
            let mut again = datagrams[i % 2 * first].clone();
            again.bytes.extend(noise);
            datagrams.push(again);
        }
        let record = record(&datagrams, None);
        prop_assert_eq!(record.sni.as_deref(), Some(SERVER_NAME));
        prop_assert_eq!(record.http_version, None);
    }
}

/// The records of all flows of these datagrams.
fn records(datagrams: &[Datagram]) -> Vec<Record> {
    let mut run = Run::new();
    for datagram in datagrams {
        run.packet(&udp(datagram.source, datagram.destination, &datagram.bytes));
    }
    run.records()
}

#[test]
fn a_connection_whose_client_changes_its_address_is_one_flow() {
    let handshake = Handshake::of(Version::V1, |_| {});
    let count = handshake.datagrams.len() as u64;
    let mut datagrams = handshake.datagrams;
    let mut data: Vec<_> = (datagrams.iter())
        .filter(|datagram| matches!(parse(&datagram.bytes, 0, true), Ok(Packet::Protected(header)) if header.kind == ProtectedKind::Short))
        .cloned()
        .collect();
    data.sort_by_key(|datagram| !is_client(datagram));
    let first = datagrams[0].source;
    // Two rebindings of a NAT: another port, another address that is on the other side of the server's in order; and back to
    // the second address, and to the first.
    let [second, third] = [address("10.9.9.9:40001"), address("255.0.0.1:3")];
    for moved in [second, third, second, second, first, first] {
        for datagram in &data {
            let mut datagram = datagram.clone();
            let end = match is_client(&datagram) {
                true => &mut datagram.source,
                false => &mut datagram.destination,
            };
            *end = moved;
            datagrams.push(datagram);
        }
    }
    let record = records(&datagrams);
    let [record] = &record[..] else {
        panic!("{} flows", record.len())
    };
    assert_eq!(record.client.port, 50_000);
    assert_eq!(record.address_changes, 4);
    assert_eq!(record.quic_version.as_deref(), Some("1"));
    let all = record.client.packets + record.server.packets;
    assert_eq!(all, count + 6 * data.len() as u64);
    let server = datagrams[0].destination;
    let of_client = datagrams
        .iter()
        .filter(|datagram| datagram.destination == server)
        .count();
    assert_eq!(record.client.packets, of_client as u64);
}

/// A connection, and 1-RTT packets that each end sent.
struct Established {
    datagrams: Vec<Datagram>,
    /// Of the client, and of the server.
    data: [Datagram; 2],
}

impl Established {
    fn new() -> Self {
        let datagrams = Handshake::of(Version::V1, |_| {}).datagrams;
        let data = [true, false].map(|of_client| {
            let is_data = |datagram: &&Datagram| {
                matches!(parse(&datagram.bytes, 0, true), Ok(Packet::Protected(header)) if header.kind == ProtectedKind::Short)
                    && is_client(datagram) == of_client
            };
            datagrams.iter().find(is_data).cloned().unwrap()
        });
        Self { datagrams, data }
    }

    /// A packet from the client at this address, or to it.
    fn at(&self, of_client: bool, address: SocketAddr) -> Datagram {
        let mut datagram = self.data[usize::from(!of_client)].clone();
        match of_client {
            true => datagram.source = address,
            false => datagram.destination = address,
        }
        datagram
    }
}

#[test]
fn a_client_has_moved_when_the_server_sends_to_its_new_address() {
    let mut connection = Established::new();
    let first = connection.data[0].source;
    let [second, forged] = [address("10.9.9.9:40001"), address("10.66.6.6:6666")];
    for (turns, changes) in [
        (&[(true, forged)][..], 0),
        (
            &[
                (true, forged),
                (false, first),
                (true, first),
                (true, forged),
            ],
            0,
        ),
        (&[(false, second)], 0),
        (&[(true, second), (true, second), (false, second)], 1),
        (&[(true, second), (false, first), (false, second)], 1),
        (
            &[
                (true, second),
                (true, forged),
                (true, second),
                (false, second),
            ],
            1,
        ),
        (
            &[
                (true, second),
                (false, second),
                (true, first),
                (false, second),
            ],
            1,
        ),
        (
            &[
                (true, second),
                (false, second),
                (true, first),
                (false, first),
            ],
            2,
        ),
    ] {
        let mut datagrams = connection.datagrams.clone();
        datagrams.extend(
            turns
                .iter()
                .map(|(of_client, at)| connection.at(*of_client, *at)),
        );
        let record = records(&datagrams).remove(0);
        assert_eq!(record.address_changes, changes, "{turns:?}");
        assert_eq!(record.client.port, first.port());
    }
    // Forged addresses do not displace that of the client.
    let turns = [(true, second), (false, second)];
    connection
        .datagrams
        .extend(turns.map(|(of_client, at)| connection.at(of_client, at)));
    for port in 1..200 {
        connection
            .datagrams
            .push(connection.at(true, (forged.ip(), port).into()));
    }
    connection.datagrams.push(connection.at(false, second));
    let found = records(&connection.datagrams);
    assert_eq!((found.len(), found[0].address_changes), (1, 1));
}

#[test]
fn a_connection_from_an_address_that_was_forged_ends_no_other_one() {
    let connection = Established::new();
    let other = PairConfig {
        seed: 7,
        ..PairConfig::default()
    };
    let other = Handshake::with(Pair::with(other), Version::V1, |_| {}).datagrams;
    let forged = address("10.66.6.6:6666");
    let mut datagrams = connection.datagrams.clone();
    datagrams.push(connection.at(true, forged));
    datagrams.extend(other.iter().cloned().map(|mut datagram| {
        match is_client(&datagram) {
            true => datagram.source = forged,
            false => datagram.destination = forged,
        }
        datagram
    }));
    datagrams.push(connection.data[1].clone());
    let found = records(&datagrams);
    let packets: Vec<_> = found
        .iter()
        .map(|record| (record.client.packets + record.server.packets) as usize)
        .collect();
    assert_eq!(packets, [connection.datagrams.len() + 2, other.len()]);
    assert!(found.iter().all(|record| record.http_version == Some("h3")));
    assert_eq!(found[0].address_changes, 0);
}

proptest! {
    #[test]
    fn moves_are_those_that_both_ends_show(
        turns in prop::collection::vec((any::<bool>(), 0u16..4), 0..60),
    ) {
        static CONNECTION: LazyLock<Established> = LazyLock::new(Established::new);
        let connection = &*CONNECTION;
        let first = connection.data[0].source;
        let at = |port: u16| match port {
            0 => first,
            port => (address("10.9.9.9:1").ip(), port).into(),
        };
        let mut datagrams = connection.datagrams.clone();
        let (mut current, mut candidate, mut changes) = (0, None, 0);
        let mut known = [true, false, false, false];
        for (of_client, port) in turns {
            // What the server sends to an address that was never the client's has no ID that is known.
            if !of_client && !known[usize::from(port)] {
                continue;
            }
            known[usize::from(port)] = true;
            datagrams.push(connection.at(of_client, at(port)));
            match of_client {
                _ if port == current => {}
                true => candidate = Some(port),
                false if candidate == Some(port) => {
                    (current, candidate) = (port, None);
                    changes += 1;
                }
                false => {}
            }
        }
        let found = records(&datagrams);
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(found[0].address_changes, changes);
        let all = found[0].client.packets + found[0].server.packets;
        prop_assert_eq!(all, datagrams.len() as u64);
    }
}

#[test]
fn packets_with_other_connection_ids_are_of_other_flows() {
    let handshake = Handshake::of(Version::V1, |_| {});
    let mut datagrams = handshake.datagrams;
    let server = datagrams[0].destination;
    for (i, source) in ["10.9.9.9:1", "10.9.9.9:2", "10.9.9.9:3"]
        .iter()
        .enumerate()
    {
        let mut other = datagrams[0].clone();
        (other.source, other.destination) = (address(source), server);
        other.bytes = vec![0x40 + i as u8; 60];
        datagrams.push(other);
    }
    assert_eq!(records(&datagrams).len(), 4);
}

#[test]
fn connections_in_turn_between_the_same_ports_are_flows_of_their_own() {
    let turns: Vec<_> = (1..4)
        .map(|seed| {
            let config = PairConfig {
                seed,
                ..PairConfig::default()
            };
            Handshake::with(Pair::with(config), Version::V1, |_| {}).datagrams
        })
        .collect();
    let found = records(&turns.concat());
    assert_eq!(found.len(), 3);
    for (record, datagrams) in found.iter().zip(&turns) {
        assert_eq!(record.sni.as_deref(), Some(SERVER_NAME));
        assert_eq!(record.http_version, Some("h3"));
        let all = record.client.packets + record.server.packets;
        assert_eq!(all, datagrams.len() as u64);
    }
    // Repeated packets begin nothing.
    let mut repeated = turns[0].clone();
    repeated.extend(turns[0].iter().cloned());
    assert_eq!(records(&repeated).len(), 1);
}

#[test]
fn versions_that_are_not_read_are_named() {
    let [client, server]: [SocketAddr; 2] = ["10.0.0.1:50000", "192.0.2.1:443"].map(address);
    let long = |version: &[u8]| [&[0xc3][..], version, &[8], &[7; 8], &[0], &[9; 1200]].concat();
    let public = |version: &[u8]| {
        let tags = [&b"PAD\0"[..], &[2, 0, 0, 0], b"SNI\0", &[17, 0, 0, 0]].concat();
        let hello = [
            &b"CHLO"[..],
            &[2, 0, 0, 0],
            &tags,
            b"--",
            b"www.example.org",
        ]
        .concat();
        [&[0x0d][..], &[7; 8], version, &[1], &[0; 12], &hello].concat()
    };
    for (datagram, version, name) in [
        (long(&[0xff, 0, 0, 29]), Some("draft-29"), None),
        (long(&[0xff, 0, 0, 22]), Some("draft-22"), None),
        (long(b"Q046"), Some("Q046"), None),
        (long(b"Q050"), Some("Q050"), None),
        (long(b"T051"), Some("T051"), None),
        (long(&[0xfa, 0xce, 0xb0, 2]), Some("mvfst-02"), None),
        (public(b"Q043"), Some("Q043"), Some("www.example.org")),
        (public(b"Q039"), Some("Q039"), Some("www.example.org")),
        // A query of DNS to an authoritative server.
        (
            vec![
                0xc3, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1,
            ],
            None,
            None,
        ),
        (vec![0x83, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], None, None),
        (public(b"X043"), None, None),
        (long(&[0xff, 0, 0, 99]), None, None),
        (long(&[0x1a, 0x2a, 0x3a, 0x4a]), None, None),
    ] {
        let mut run = Run::new();
        run.packet(&udp(client, server, &datagram));
        let record = run.records().remove(0);
        assert_eq!(record.quic_version.as_deref(), version);
        assert_eq!(record.sni.as_deref(), name);
        assert_eq!(record.http_version, None);
    }
}
