use marline_wire::packet::{LongHeader, LongType, VERSION_1, expand, patch_length, truncate};
use marline_wire::{ConnectionId, PathId, Side, Version};
use proptest::prelude::*;
use rustls::crypto::cipher::{AeadKey, Iv};

use crate::crypto::provider::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
use crate::crypto::{
    DirectionalKeys, OpenError, Sealing, TAG_LEN, Unprotected, initial_keys, open, seal, unprotect,
};
use crate::testing::hex;

fn array<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().unwrap()
}

fn dcid() -> ConnectionId {
    ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
}

/// Seals `header` and `payload` as the whole of a buffer.
fn sealed(
    keys: &DirectionalKeys,
    header: &str,
    number_len: usize,
    number: u64,
    payload: &[u8],
) -> Vec<u8> {
    sealed_on(PathId::INITIAL, keys, header, number_len, number, payload)
}

fn sealed_on(
    path_id: PathId,
    keys: &DirectionalKeys,
    header: &str,
    number_len: usize,
    number: u64,
    payload: &[u8],
) -> Vec<u8> {
    let mut buf = hex(header);
    let packet = Sealing {
        path_id,
        number,
        packet_start: 0,
        number_offset: buf.len() - number_len,
        payload_offset: buf.len(),
    };
    buf.extend_from_slice(payload);
    seal(keys, packet, &mut buf);
    buf
}

/// The frames of the client's Initial packet in the RFCs' examples.
fn client_hello() -> Vec<u8> {
    let mut payload = hex(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c0000
         0413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017
         001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559f
         edba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306030203080408
         050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff080110
         0104800075300901100f088394c8f03e51570806048000ffff",
    );
    payload.resize(1162, 0);
    payload
}

/// The frames of the server's Initial packet in the RFCs' examples.
fn server_hello() -> Vec<u8> {
    hex(
        "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a
         045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bc
         f32bb9da1a002b00020304",
    )
}

/// Seals the client's example and opens it again.
fn check_client_initial(version: Version, header: &str, expected: &str) {
    let payload = client_hello();
    let client = initial_keys(version, &dcid(), Side::Client);
    let mut packet = sealed(&client.local, header, 4, 2, &payload);
    assert_eq!(packet, hex(expected));

    let server = initial_keys(version, &dcid(), Side::Server);
    let found = unprotect(&*server.remote.header, &mut packet, 18).unwrap();
    let expected = Unprotected {
        first_byte: hex(header)[0],
        truncated: 2,
        number_len: 4,
    };
    assert_eq!(found, expected);
    assert_eq!(found.check_reserved_bits(), Ok(()));
    assert_eq!(
        open(&*server.remote.packet, PathId::INITIAL, 2, &mut packet, 22),
        Ok(&payload[..])
    );
}

#[test]
fn client_initial_of_rfc_9001_appendix_a2() {
    let header = "c300000001088394c8f03e5157080000449e00000002";
    check_client_initial(Version::V1, header, include_str!("client_initial.hex"));
}

#[test]
fn client_initial_of_rfc_9369_appendix_a2() {
    let header = "d36b3343cf088394c8f03e5157080000449e00000002";
    check_client_initial(Version::V2, header, include_str!("client_initial_v2.hex"));
}

#[test]
fn server_initial_of_rfc_9001_appendix_a3() {
    let keys = initial_keys(Version::V1, &dcid(), Side::Server);
    let header = "c1000000010008f067a5502a4262b50040750001";
    let expected = hex(
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c697975
         54780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bde
         d74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407d
         d074ee",
    );
    assert_eq!(sealed(&keys.local, header, 2, 1, &server_hello()), expected);
}

#[test]
fn server_initial_of_rfc_9369_appendix_a3() {
    let keys = initial_keys(Version::V2, &dcid(), Side::Server);
    let header = "d16b3343cf0008f067a5502a4262b50040750001";
    let expected = hex(
        "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698baeea26b91eb761d9b89237b
         bf87263017915358230035f7fd3945d88965cf17f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e
         42757507698075b2c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca84bed8521
         e2e140",
    );
    assert_eq!(sealed(&keys.local, header, 2, 1, &server_hello()), expected);
}

/// Keys of RFC 9001, appendix A.5, with another IV.
fn chacha20(iv: &str) -> DirectionalKeys {
    let quic = TLS13_CHACHA20_POLY1305_SHA256
        .tls13()
        .unwrap()
        .quic
        .unwrap();
    let key: [u8; 32] = array("c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8");
    let header: [u8; 32] =
        array("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4");
    DirectionalKeys {
        packet: quic.packet_key(AeadKey::from(key), Iv::from(array::<12>(iv))),
        header: quic.header_protection_key(AeadKey::from(header)),
    }
}

/// The nonce of packet number 0 on path 0 is the IV.
#[test]
fn nonce_of_multipath_draft_section_2_4() {
    let keys = chacha20("6b26114b9cba2b63a9e8dd4f");
    let payload = b"on path three";
    let nonce_as_iv = chacha20("6b2611489cba2b63a9e8097e");
    let expected = sealed(&nonce_as_iv, "4000", 1, 0, payload);
    let seal_on = |path_id| sealed_on(PathId(path_id), &keys, "4000", 1, 54_321, payload);
    assert_eq!(seal_on(3), expected);
    assert_ne!(seal_on(2), expected);

    let mut packet = expected;
    unprotect(&*keys.header, &mut packet, 1).unwrap();
    assert_eq!(
        open(&*keys.packet, PathId(3), 54_321, &mut packet, 2),
        Ok(&payload[..])
    );
}

#[test]
fn the_nonce_contains_all_32_bits_of_the_path_id() {
    let largest = (1 << 62) - 1;
    let keys = chacha20("000000000000000000000000");
    let nonce_as_iv = chacha20("ffffffff3fffffffffffffff");
    assert_eq!(
        sealed_on(PathId::MAX, &keys, "4000", 1, largest, b"the last"),
        sealed(&nonce_as_iv, "4000", 1, 0, b"the last"),
    );
}

#[test]
fn short_header_of_rfc_9001_appendix_a5() {
    let keys = chacha20("e0459b3474bdd0e44a41c144");
    let mut packet = sealed(&keys, "4200bff4", 3, 654_360_564, &[0x01]);
    assert_eq!(packet, hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));

    let found = unprotect(&*keys.header, &mut packet, 1).unwrap();
    assert_eq!((found.first_byte, found.number_len), (0x42, 3));
    assert_eq!(expand(Some(654_360_563), found.truncated, 3), 654_360_564);
    assert_eq!(
        open(&*keys.packet, PathId::INITIAL, 654_360_564, &mut packet, 4),
        Ok(&[0x01][..])
    );
}

#[test]
fn a_reserved_bit_that_is_set_is_a_violation() {
    for (first_byte, ok) in [
        (0x40, true),
        (0x48, false),
        (0x50, false),
        (0xc3, true),
        (0xc4, false),
        (0xd8, false),
    ] {
        let header = Unprotected {
            first_byte,
            truncated: 0,
            number_len: 1,
        };
        assert_eq!(header.check_reserved_bits().is_ok(), ok, "{first_byte:#x}");
    }
}

proptest! {
    #[test]
    fn opening_returns_what_was_sealed_unless_it_was_altered(
        before in proptest::collection::vec(any::<u8>(), 0..40),
        path_id in prop_oneof![Just(0), any::<u32>()].prop_map(PathId),
        number in 0..1u64 << 62,
        behind in 0..100u64,
        payload in proptest::collection::vec(any::<u8>(), 4..1400),
        flipped in any::<proptest::sample::Index>(),
    ) {
        let largest = number.checked_sub(behind + 1);
        let header = LongHeader { kind: LongType::Handshake, version: VERSION_1, dcid: dcid(), scid: dcid(), token: &[] };
        let mut buf = before.clone();
        let end = header.encode(truncate(number, largest), false, &mut buf);
        buf.extend_from_slice(&payload);
        let length = buf.len() - end.number_offset + TAG_LEN;
        patch_length(&mut buf, end.length_offset, length);
        let sealing = Sealing {
            path_id,
            number,
            packet_start: before.len(),
            number_offset: end.number_offset,
            payload_offset: end.payload_offset,
        };
        seal(&initial_keys(Version::V1, &dcid(), Side::Client).local, sealing, &mut buf);
        prop_assert_eq!(&buf[..before.len()], &before[..]);

        let keys = initial_keys(Version::V1, &dcid(), Side::Server).remote;
        let number_offset = end.number_offset - before.len();
        let read = |packet: &mut [u8]| {
            let found = unprotect(&*keys.header, packet, number_offset)?;
            let number = expand(largest, found.truncated, found.number_len);
            let payload_offset = number_offset + found.number_len;
            open(&*keys.packet, path_id, number, packet, payload_offset).map(<[u8]>::to_vec)
        };
        prop_assert_eq!(read(&mut buf.clone()[before.len()..]), Ok(payload));

        let mut altered = buf[before.len()..].to_vec();
        let index = flipped.index(altered.len());
        altered[index] ^= 1;
        prop_assert!(read(&mut altered).is_err());
        altered.pop();
        prop_assert!(read(&mut altered).is_err());
    }

    #[test]
    fn arbitrary_bytes_do_not_open(
        mut packet in proptest::collection::vec(any::<u8>(), 0..80),
        number_offset in 0..60usize,
        number: u64,
    ) {
        let keys = initial_keys(Version::V1, &dcid(), Side::Server).remote;
        if let Ok(found) = unprotect(&*keys.header, &mut packet, number_offset) {
            let payload_offset = number_offset + found.number_len;
            let opened = open(&*keys.packet, PathId(0), number, &mut packet, payload_offset);
            prop_assert_eq!(opened, Err(OpenError::Unauthentic));
        }
    }
}
