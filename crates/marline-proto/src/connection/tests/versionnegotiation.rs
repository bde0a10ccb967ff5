//! Version negotiation with a client whose version the server does not support.

use marline_wire::packet::VersionNegotiation;

use super::*;

#[test]
fn a_client_without_a_version_in_common_ends_with_version_mismatch() {
    let mut pair = Pair::new();
    pair.reconfigure_server(|server, _| server.versions = Versions::only(Version::V1));
    pair.client_config.version = Version::V2.number();
    pair.client_config.versions = Versions::only(Version::V2);
    let client = pair.connect();
    pair.drive(Duration::from_millis(100));
    assert_eq!(
        client_end(&pair, client),
        Some(ConnectionError::VersionMismatch)
    );
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
    pair.client_config.version = Version::V1.number();
    pair.client_config.versions = Versions::default();
    pair.establish();
}

#[test]
fn a_client_of_a_reserved_version_begins_again_with_one_in_common() {
    let mut pair = Pair::new();
    for random in (0..=u32::MAX).step_by(1 << 28) {
        pair.client_config.version = random & 0xf0f0_f0f0 | 0x0a0a_0a0a;
        let ends = pair.establish();
        assert_eq!(pair.client(ends.client).version(), 1);
    }
}

/// Sends the client a Version Negotiation packet, as an attacker who saw its first packet can.
fn offer(pair: &mut Pair, versions: &[u32], dcid: &[u8], scid: &[u8]) {
    let mut bytes = Vec::new();
    VersionNegotiation::encode(dcid, scid, versions, 0, &mut bytes);
    let datagram = Datagram {
        source: pair.server.address,
        destination: pair.client.address,
        ecn: None,
        bytes,
    };
    pair.network.inject(pair.now, Direction::ToClient, datagram);
}

#[test]
fn invalid_or_late_version_negotiation_is_ignored() {
    let mut pair = Pair::new();
    pair.network.conditions(Direction::ToServer).delay = Duration::from_millis(50);
    let client = pair.connect();
    let ours = pair.client(client).handshake_cid();
    let theirs = pair.client(client).original_destination();
    let version = marline_wire::packet::VERSION_1;
    offer(&mut pair, &[version, 0xfeed], &ours, &theirs);
    offer(&mut pair, &[0xfeed], &ours, b"guessed!");
    pair.drive(Duration::from_millis(300));
    assert_eq!(client_end(&pair, client), None);
    assert!(!pair.client(client).is_handshaking());
    offer(&mut pair, &[0xfeed], &ours, &theirs);
    pair.drive(Duration::from_millis(300));
    assert_eq!(
        client_end(&pair, client),
        None,
        "a Version Negotiation packet after the handshake"
    );
}
