//! Establishments of a client and a server that exchange CRYPTO frames without packets, and their schedules.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_wire::frame::{Frame, Frames};
use marline_wire::packet::{self, Packet, ProtectedHeader, ProtectedKind, VersionNegotiation};
use marline_wire::{ConnectionId, Version};

use super::*;
use crate::config::{ClientConfig, EndpointConfig, ServerConfig};
use crate::handshake::TlsServerConfig;
use crate::limits::{FLIGHT_COPIES, MAX_UNDECRYPTABLE_PACKETS};
use crate::observe::events::{DropTrigger, KeyKind};
use crate::paths::{FirstPath, PathSet, Slot};
use crate::recovery::InitialWindowChoice;
use crate::rng::SecureRng;
use crate::testing::{ALPN, SERVER_NAME, TestIdentity};
use crate::tuple::{Arrival, FourTuple};

const CLIENT_ID: [u8; 4] = [7; 4];

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

fn addresses() -> FourTuple {
    let address = |port| SocketAddr::from(([192, 0, 2, 1], port));
    FourTuple {
        local: address(443),
        remote: address(50_000),
    }
}

fn arrival(datagram: usize) -> Arrival {
    Arrival {
        tuple: addresses(),
        ecn: None,
        datagram,
    }
}

/// One end, with the paths whose recovery it consults.
struct End {
    establishment: Establishment,
    paths: PathSet,
    /// The packets that it expects, by kind of their keys.
    installed: Vec<KeyKind>,
    is_complete: bool,
}

impl End {
    fn new(start: Start, config: &TransportConfig) -> Self {
        let mut rng = start.rng;
        let first = FirstPath {
            addresses: start.addresses,
            is_validated: start.is_validated,
            local_cid: start.establishment.progress().local_cid(),
            remote_cid: start.remote_cid,
            initial_window: InitialWindowChoice {
                bytes: 12_000,
                default: 12_000,
            },
            initial_rtt: start.initial_rtt,
        };
        Self {
            establishment: start.establishment,
            paths: PathSet::new(config, first, &mut rng),
            installed: Vec::new(),
            is_complete: false,
        }
    }

    fn poll(&mut self) {
        while let Some(step) = self.establishment.poll() {
            match step {
                Step::KeysInstalled(kind) => self.installed.push(kind),
                Step::PeerParameters(params) => {
                    self.establishment.check(&params).expect("parameters");
                    self.establishment.set_peer(&params);
                }
                Step::Complete => {
                    self.establishment.on_complete(at(0));
                    self.is_complete = true;
                }
                Step::VersionChanged | Step::Restored(_) | Step::ZeroRttRejected => {}
            }
        }
    }

    /// Sends what is due to `other`; returns whether there was anything.
    fn send_to(&mut self, other: &mut Self) -> bool {
        let mut any = false;
        for space in SpaceId::ALL {
            let mut buf = Vec::new();
            self.establishment
                .write_crypto(space, &mut buf, 10_000, |_| {});
            for frame in Frames::new(&buf) {
                let Ok(Frame::Crypto(crypto)) = frame else {
                    panic!("{frame:?}");
                };
                let recovery = &other.paths[Slot::FIRST].recovery;
                other
                    .establishment
                    .on_crypto(at(0), space, &crypto, recovery)
                    .expect("CRYPTO data");
                any = true;
            }
        }
        other.poll();
        any
    }
}

fn client(transport: TransportConfig, identity: &TestIdentity) -> End {
    let tls = identity.client(&[ALPN], None);
    let mut config = ClientConfig::new(TlsClientConfig::new(Arc::new(tls)).expect("a client"));
    config.transport = Arc::new(transport);
    let endpoint = EndpointConfig {
        connection_id_len: CLIENT_ID.len(),
        ..EndpointConfig::from_seed([1; 32])
    };
    let rng = SecureRng::from_seed([1; 32]);
    let start = Start::client(at(0), &endpoint, &config, addresses(), SERVER_NAME, rng);
    let mut end = End::new(start.expect("a start"), &config.transport);
    end.poll();
    end
}

fn alone() -> End {
    client(
        TransportConfig::default(),
        &TestIdentity::new(&[SERVER_NAME]),
    )
}

/// The server that answers `client`.
fn server(client: &Establishment, identity: &TestIdentity) -> End {
    let tls = identity.server(&[ALPN], None);
    let config = ServerConfig::new(TlsServerConfig::new(Arc::new(tls)).expect("a server"));
    let progress = client.progress();
    let incoming = Incoming {
        version: Version::V1,
        tuple: addresses(),
        original_destination: progress.original_destination(),
        destination: progress.original_destination(),
        source: progress.local_cid(),
        retry_source: None,
        validated: true,
        capacity: None,
        local_cid: ConnectionId::new(&[9; 8]).expect("8 bytes"),
        unix_time_s: 0,
        rng: SecureRng::from_seed([2; 32]),
    };
    let endpoint = EndpointConfig::from_seed([2; 32]);
    let start = Start::server(at(0), &endpoint, &config, incoming);
    End::new(start.expect("a start"), &config.transport)
}

/// A header of a packet to the client.
fn header(kind: ProtectedKind, version: Version) -> ProtectedHeader {
    ProtectedHeader {
        kind,
        version: Some(version),
        dcid: ConnectionId::new(&CLIENT_ID).expect("4 bytes"),
        scid: ConnectionId::new(&[9; 8]).expect("8 bytes"),
        first_byte: 0xc0,
        number_offset: 20,
        len: 100,
    }
}

#[test]
fn a_handshake_installs_the_keys_of_each_level_in_order() {
    let identity = TestIdentity::new(&[SERVER_NAME]);
    let mut client = client(TransportConfig::default(), &identity);
    let mut server = server(&client.establishment, &identity);
    let source = header(ProtectedKind::Handshake, Version::V1);
    assert_eq!(client.establishment.on_source(&source), Source::New);
    while client.send_to(&mut server) | server.send_to(&mut client) {}
    for end in [&client, &server] {
        assert!(end.is_complete);
        assert_eq!(end.installed, [KeyKind::Handshake, KeyKind::OneRtt]);
        assert!(!end.establishment.progress().is_confirmed());
        assert!(!end.establishment.is_over());
    }
    let client = &mut client.establishment;
    assert!(client.on_confirmed() && !client.on_confirmed());
    for (space, kind) in [
        (SpaceId::Initial, KeyKind::Initial),
        (SpaceId::Handshake, KeyKind::Handshake),
    ] {
        assert_eq!(client.discard_keys(space), Some(kind));
        assert_eq!(client.discard_keys(space), None);
        assert!(client.discard_space(space).is_some());
    }
    assert!(client.is_over());
    assert_eq!(client.sealing_level(SpaceId::Initial), None);
    assert_eq!(
        client.sealing_level(SpaceId::Data),
        Some(EncryptionLevel::OneRtt)
    );
}

#[test]
fn a_first_flight_is_copied_at_doubling_intervals_until_the_server_answers() {
    let mut establishment = alone().establishment;
    let mut times = Vec::new();
    while let Some(time) = establishment.retransmission.next_timeout() {
        assert_eq!(
            establishment.poll_repeat(time - Duration::from_nanos(1)),
            None
        );
        assert_eq!(establishment.poll_repeat(time), Some(Repeat::Flight));
        times.push(time);
    }
    assert_eq!(times, [at(50), at(150), at(350)]);
    assert_eq!(times.len(), usize::from(FLIGHT_COPIES));
    establishment.expect_answer(at(400), None);
    establishment.on_packet_opened(&header(ProtectedKind::Handshake, Version::V1));
    assert_eq!(establishment.retransmission.next_timeout(), None);
}

#[test]
fn packets_wait_for_keys_that_may_come_and_only_a_few_of_them() {
    let mut establishment = alone().establishment;
    let mut defer = |level| establishment.defer(at(0), arrival(1200), level, &[0x40; 30]);
    assert!(
        !defer(EncryptionLevel::Initial),
        "its keys exist or are discarded"
    );
    assert!(!defer(EncryptionLevel::ZeroRtt), "a client opens none");
    for _ in 0..MAX_UNDECRYPTABLE_PACKETS {
        assert!(defer(EncryptionLevel::OneRtt));
    }
    assert!(!defer(EncryptionLevel::Handshake));
    assert_eq!(establishment.deferred(), MAX_UNDECRYPTABLE_PACKETS);
    assert!(establishment.take_openable().is_none());
}

#[test]
fn a_server_refuses_initial_packets_in_small_datagrams() {
    let identity = TestIdentity::new(&[SERVER_NAME]);
    let client = client(TransportConfig::default(), &identity);
    let mut server = server(&client.establishment, &identity).establishment;
    let mut packet = Vec::new();
    let initial = packet::LongHeader {
        kind: packet::LongType::Initial,
        version: 1,
        dcid: server.progress().original_destination(),
        scid: client.establishment.progress().local_cid(),
        token: &[],
    };
    let end = initial.encode(packet::truncate(0, None), false, &mut packet);
    packet.resize(1200, 0);
    packet::patch_length(&mut packet, end.length_offset, 1200 - end.number_offset);
    let Ok(Packet::Protected(header)) = packet::parse(&packet, 8, false) else {
        panic!("an Initial packet");
    };
    let mut refuse = |datagram| server.refuse(&header, &arrival(datagram), &packet);
    assert_eq!(refuse(1199), Some(DropTrigger::Invalid));
    assert_eq!(refuse(1200), None);
}

#[test]
fn a_client_restarts_once_with_a_version_that_both_support() {
    let mut establishment = alone().establishment;
    let progress = establishment.progress();
    let (local, original) = (progress.local_cid(), progress.original_destination());
    let select = |establishment: &Establishment, destination: &[u8], offered: &[u32]| {
        let mut buf = Vec::new();
        VersionNegotiation::encode(destination, &original, offered, 0, &mut buf);
        let Ok(Packet::VersionNegotiation(packet)) = packet::parse(&buf, 4, false) else {
            panic!("a Version Negotiation packet");
        };
        establishment.select_version(&packet, offered)
    };
    let v2 = Version::V2.number();
    assert_eq!(select(&establishment, &[1; 4], &[v2]), Selection::Ignored);
    assert_eq!(select(&establishment, &local, &[1, v2]), Selection::Ignored);
    assert_eq!(
        select(&establishment, &local, &[5]),
        Selection::NothingInCommon
    );
    let both = select(&establishment, &local, &[v2]);
    assert_eq!(both, Selection::Version(Version::V2));
    assert!(establishment.restart(Version::V2).is_some());
    assert_eq!(establishment.versions().current(), v2);
    assert!(
        establishment.has_crypto(SpaceId::Initial),
        "a new first flight"
    );
    assert_eq!(select(&establishment, &local, &[1]), Selection::Ignored);
    assert!(establishment.restart(Version::V1).is_none());
}
