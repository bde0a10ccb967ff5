use marline_wire::packet::{Packet, parse};
use marline_wire::{ConnectionId, Frame, Frames, Side, Version};

use super::{PacketKeys, RecordKey};
use crate::testing::hex;

/// The client's Initial packet of RFC 9001, appendix A.2.
const CLIENT_INITIAL: &str = include_str!("../packet/client_initial.hex");

#[test]
fn the_client_initial_of_rfc_9001_opens_with_keys_from_its_destination_id() {
    let mut packet = hex(CLIENT_INITIAL.trim());
    let copy = packet.clone();
    let Ok(Packet::Protected(header)) = parse(&copy, 0, false) else {
        panic!("a protected packet");
    };
    let keys = PacketKeys::initial(Version::V1, &header.dcid);
    let opened = keys
        .open(Side::Client, &header, None, &mut packet)
        .expect("the keys are right");
    assert_eq!(opened.number, 2);
    let first = Frames::new(opened.payload).next();
    assert!(matches!(first, Some(Ok(Frame::Crypto(crypto))) if crypto.data.len() == 241));
}

#[test]
fn a_packet_of_other_keys_does_not_open() {
    let mut packet = hex(CLIENT_INITIAL.trim());
    let copy = packet.clone();
    let Ok(Packet::Protected(header)) = parse(&copy, 0, false) else {
        panic!("a protected packet");
    };
    let other = ConnectionId::new(&[1; 8]).expect("short enough");
    let keys = PacketKeys::initial(Version::V1, &other);
    assert!(
        keys.open(Side::Client, &header, None, &mut packet)
            .is_none()
    );
    let keys = PacketKeys::initial(Version::V1, &header.dcid);
    let mut packet = copy;
    assert!(
        keys.open(Side::Server, &header, None, &mut packet)
            .is_none()
    );
}

/// The server's handshake traffic secret of RFC 8448, section 3, and its first encrypted record.
const SERVER_SECRET: &str = "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38";

#[test]
fn the_server_flight_of_rfc_8448_opens_with_its_handshake_secret() {
    let key = RecordKey::new(0x1301, &hex(SERVER_SECRET));
    let mut key = key.expect("the suite is known");
    let record = hex(include_str!("server_flight.hex"));
    let (header, fragment) = record.split_first_chunk::<5>().expect("a header");
    let mut altered = fragment.to_vec();
    altered[0] ^= 1;
    assert!(key.open_next(*header, &mut altered).is_none());
    let mut fragment = fragment.to_vec();
    let opened = key.open_next(*header, &mut fragment).expect("authentic");
    assert_eq!(opened.content_type, 22);
    // EncryptedExtensions, 36 bytes.
    assert_eq!(opened.content[..4], [8, 0, 0, 0x24]);
}

#[test]
fn secrets_of_a_wrong_length_and_unknown_suites_give_no_key() {
    assert!(RecordKey::new(0x1301, &[0; 48]).is_none());
    assert!(RecordKey::new(0x1302, &[0; 48]).is_some());
    assert!(RecordKey::new(0xc02f, &[0; 32]).is_none());
    assert!(PacketKeys::handshake(Version::V2, 0x1303, &[0; 32], &[0; 31]).is_none());
    assert!(PacketKeys::handshake(Version::V2, 0x1303, &[0; 32], &[0; 32]).is_some());
}
