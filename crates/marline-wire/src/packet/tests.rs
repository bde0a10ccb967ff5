use super::*;
use crate::ConnectionId;
use proptest::prelude::*;

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn id(digits: &str) -> ConnectionId {
    ConnectionId::new(&hex(digits)).unwrap()
}

fn protected(bytes: &[u8], local_cid_len: usize) -> ProtectedHeader {
    match parse(bytes, local_cid_len, false) {
        Ok(Packet::Protected(header)) => header,
        other => panic!("{other:?}"),
    }
}

fn connection_id() -> impl Strategy<Value = ConnectionId> {
    proptest::collection::vec(any::<u8>(), 0..=20)
        .prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), len)
}

fn number() -> impl Strategy<Value = TruncatedNumber> {
    (0..1u64 << 61, 0..31u32)
        .prop_map(|(full, bits)| truncate(full, Some(full.saturating_sub(1 << bits))))
}

#[test]
fn examples_of_rfc_9000_appendix_a2() {
    let acked = Some(0xabe8b3);
    let short = truncate(0xac5c02, acked);
    assert_eq!((short.value(), short.len()), (0x5c02, 2));
    let long = truncate(0xace8fe, acked);
    assert_eq!((long.value(), long.len()), (0xace8fe, 3));
}

#[test]
fn example_of_rfc_9000_appendix_a3() {
    assert_eq!(expand(Some(0xa82f30ea), 0x9b32, 2), 0xa82f9b32);
}

#[test]
fn packet_numbers_at_their_limits_are_truncated_and_expanded() {
    assert_eq!(expand(None, 0, 1), 0);
    assert_eq!(expand(None, 0xff, 1), 0xff);
    assert_eq!(expand(Some(0xff), 0, 1), 0x100);
    assert_eq!(expand(Some(0x100), 0xff, 1), 0xff);
    let max = (1 << 62) - 1;
    assert_eq!(expand(Some(max - 1), 0xff, 1), max);
    assert_eq!(truncate(0, None).len(), 1);
    assert_eq!(truncate(127, None).len(), 1);
    assert_eq!(truncate(128, None).len(), 2);
    assert_eq!(truncate(u64::MAX, None).len(), 4);
    assert_eq!(truncate(5, Some(9)).len(), 1);
}

#[test]
fn packet_numbers_have_room_for_later_packets_that_arrive_first() {
    let lens = [0, 0x4000, 0x4001, 0x40_0000, 0x40_0001, 1 << 30]
        .map(|distance| truncate_for_reordering(1 << 40, Some((1 << 40) - distance)).len());
    assert_eq!(lens, [2, 2, 3, 3, 4, 4]);
    assert_eq!(truncate_for_reordering(0, None).len(), 2);
}

#[test]
fn client_initial_of_rfc_9001_appendix_a2() {
    let header = LongHeader {
        kind: LongType::Initial,
        version: VERSION_1,
        dcid: id("8394c8f03e515708"),
        scid: ConnectionId::EMPTY,
        token: &[],
    };
    let four_bytes = truncate(0x1_0000_0002, Some(0));
    let mut buf = Vec::new();
    let end = header.encode(four_bytes, false, &mut buf);
    patch_length(&mut buf, end.length_offset, 1182);
    assert_eq!(buf, hex("c300000001088394c8f03e5157080000449e00000002"));
    assert_eq!((end.number_offset, end.payload_offset), (18, 22));

    let mut packet = hex("c000000001088394c8f03e5157080000449e7b9aec34");
    packet.resize(1200, 0);
    let header = protected(&packet, 0);
    assert_eq!(header.dcid, id("8394c8f03e515708"));
    assert_eq!(header.scid, ConnectionId::EMPTY);
    assert_eq!(header.token(&packet), b"");
    assert_eq!((header.number_offset, header.len), (18, 1200));
    assert_eq!(
        parse(&packet[..1199], 0, false),
        Err(HeaderError::Truncated)
    );
}

#[test]
fn server_initial_of_rfc_9001_appendix_a3() {
    let header = LongHeader {
        kind: LongType::Initial,
        version: VERSION_1,
        dcid: ConnectionId::EMPTY,
        scid: id("f067a5502a4262b5"),
        token: &[],
    };
    let two_bytes = truncate(0x1_0001, Some(0xff01));
    let mut buf = Vec::new();
    let end = header.encode(two_bytes, false, &mut buf);
    patch_length(&mut buf, end.length_offset, 117);
    assert_eq!(buf, hex("c1000000010008f067a5502a4262b50040750001"));
}

#[test]
fn retry_of_rfc_9001_appendix_a4() {
    let packet = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    let Ok(Packet::Retry(retry)) = parse(&packet, 8, false) else {
        panic!("a Retry packet");
    };
    assert_eq!(retry.dcid, ConnectionId::EMPTY);
    assert_eq!(retry.scid, id("f067a5502a4262b5"));
    assert_eq!(retry.token, b"token");
    assert_eq!(retry.integrity_tag[..], packet[20..]);

    let mut buf = Vec::new();
    Retry::encode_without_tag(
        Version::V1,
        retry.dcid,
        retry.scid,
        b"token",
        0x0f,
        &mut buf,
    );
    assert_eq!(buf, packet[..20]);
    assert_eq!(buf, retry.without_tag);
    assert_eq!(
        retry::pseudo_packet(id("8394c8f03e515708"), retry.without_tag),
        hex("088394c8f03e515708ff000000010008f067a5502a4262b5746f6b656e"),
    );
    assert_eq!(
        parse(&[&packet[..15], &packet[20..]].concat(), 8, false),
        Err(HeaderError::EmptyRetryToken)
    );
    assert_eq!(parse(&packet[..30], 8, false), Err(HeaderError::Truncated));
}

#[test]
fn initial_headers_of_rfc_9369_appendix_a() {
    let client = LongHeader {
        kind: LongType::Initial,
        version: VERSION_2,
        dcid: id("8394c8f03e515708"),
        scid: ConnectionId::EMPTY,
        token: &[],
    };
    let mut buf = Vec::new();
    let end = client.encode(truncate(0x1_0000_0002, Some(0)), false, &mut buf);
    patch_length(&mut buf, end.length_offset, 1182);
    assert_eq!(buf, hex("d36b3343cf088394c8f03e5157080000449e00000002"));

    let server = LongHeader {
        dcid: ConnectionId::EMPTY,
        scid: id("f067a5502a4262b5"),
        ..client
    };
    let mut buf = Vec::new();
    let end = server.encode(truncate(0x1_0001, Some(0xff01)), false, &mut buf);
    patch_length(&mut buf, end.length_offset, 117);
    assert_eq!(buf, hex("d16b3343cf0008f067a5502a4262b50040750001"));
}

#[test]
fn retry_of_rfc_9369_appendix_a4() {
    let packet = hex("cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6");
    let Ok(Packet::Retry(retry)) = parse(&packet, 8, false) else {
        panic!("a Retry packet");
    };
    assert_eq!(retry.version, Version::V2);
    assert_eq!(retry.scid, id("f067a5502a4262b5"));
    assert_eq!(retry.token, b"token");
    let mut buf = Vec::new();
    Retry::encode_without_tag(
        Version::V2,
        retry.dcid,
        retry.scid,
        b"token",
        0x0f,
        &mut buf,
    );
    assert_eq!(buf, retry.without_tag);
}

/// RFC 9000, table 5; RFC 9369, section 3.2.
#[test]
fn each_version_has_its_own_type_bits() {
    for (version, kind, bits) in [
        (Version::V1, LongType::Initial, 0b00),
        (Version::V1, LongType::ZeroRtt, 0b01),
        (Version::V1, LongType::Handshake, 0b10),
        (Version::V2, LongType::Initial, 0b01),
        (Version::V2, LongType::ZeroRtt, 0b10),
        (Version::V2, LongType::Handshake, 0b11),
    ] {
        let header = LongHeader {
            kind,
            version: version.number(),
            dcid: id("0102"),
            scid: id("03"),
            token: &[],
        };
        let mut buf = Vec::new();
        let end = header.encode(truncate(0, None), false, &mut buf);
        patch_length(&mut buf, end.length_offset, 1);
        assert_eq!((buf[0] & bits::LONG_TYPE) >> 4, bits, "{version} {kind:?}");
        assert_eq!(protected(&buf, 0).version, Some(version));
    }
}

#[test]
fn short_header_of_rfc_9001_appendix_a5() {
    let header = ShortHeader {
        dcid: ConnectionId::EMPTY,
        spin: false,
        key_phase: false,
    };
    let full = 654_360_564;
    let number = truncate(full, Some(full - 0x8001));
    let mut buf = Vec::new();
    let end = header.encode(number, false, &mut buf);
    assert_eq!(buf, hex("4200bff4"));
    assert_eq!((end.number_offset, end.payload_offset), (1, 4));
    assert_eq!(expand(Some(full - 1), 0x00bff4, 3), full);

    let packet = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
    let header = protected(&packet, 0);
    assert_eq!(header.kind, ProtectedKind::Short);
    assert_eq!((header.number_offset, header.len), (1, 21));
}

#[test]
fn a_cleared_fixed_bit_is_accepted_only_if_negotiated() {
    let header = ShortHeader {
        dcid: id("0102"),
        spin: true,
        key_phase: true,
    };
    let mut buf = Vec::new();
    header.encode(truncate(9, None), true, &mut buf);
    assert_eq!(buf, [0x24, 1, 2, 9]);
    assert_eq!(parse(&buf, 2, false), Err(HeaderError::FixedBit));
    assert!(matches!(parse(&buf, 2, true), Ok(Packet::Protected(_))));
}

#[test]
fn connection_ids_of_unknown_versions_may_have_255_bytes() {
    let mut buf = vec![0x80, 0xfa, 0xfa, 0xfa, 0xfa, 255];
    buf.extend([1; 255]);
    buf.push(30);
    buf.extend([2; 30]);
    let packet = Packet::UnsupportedVersion {
        version: 0xfafa_fafa,
        dcid: &[1; 255],
        scid: &[2; 30],
    };
    assert_eq!(parse(&buf, 8, false), Ok(packet));
    assert_eq!(destination(&buf, 8), Some(&[1; 255][..]));
    buf[1..5].copy_from_slice(&VERSION_1.to_be_bytes());
    buf[0] |= bits::FIXED;
    assert_eq!(parse(&buf, 8, false), Err(HeaderError::TooLongConnectionId));
}

#[test]
fn version_negotiation_rejects_incomplete_versions() {
    let mut buf = Vec::new();
    let versions = [VERSION_1, 0x1a2a_3a4a];
    VersionNegotiation::encode(&[1; 40], &[2; 8], &versions, 0x15, &mut buf);
    let Ok(Packet::VersionNegotiation(packet)) = parse(&buf, 8, false) else {
        panic!("a Version Negotiation packet");
    };
    assert_eq!((packet.dcid, packet.scid), (&[1; 40][..], &[2; 8][..]));
    assert!(packet.versions().eq(versions));
    let head = buf.len() - 8;
    for len in head..buf.len() {
        let whole = len == head + 4;
        assert_eq!(parse(&buf[..len], 8, false).is_ok(), whole, "{len}");
    }
}

#[test]
fn coalesced_packets_are_parsed_in_sequence() {
    let mut datagram = Vec::new();
    for (kind, payload) in [(LongType::Initial, 40), (LongType::Handshake, 50)] {
        let header = LongHeader {
            kind,
            version: VERSION_1,
            dcid: id("0102"),
            scid: id("03"),
            token: b"token",
        };
        let end = header.encode(truncate(1, None), false, &mut datagram);
        datagram.resize(end.payload_offset + payload, 0);
        let length = datagram.len() - end.number_offset;
        patch_length(&mut datagram, end.length_offset, length);
    }
    let header = ShortHeader {
        dcid: id("0102"),
        spin: false,
        key_phase: false,
    };
    header.encode(truncate(1, None), false, &mut datagram);
    datagram.resize(datagram.len() + 30, 0);

    let first = protected(&datagram, 2);
    assert_eq!(first.token(&datagram), b"token");
    let second = protected(&datagram[first.len..], 2);
    assert_eq!(second.kind, ProtectedKind::Handshake);
    let third = protected(&datagram[first.len + second.len..], 2);
    assert_eq!(third.kind, ProtectedKind::Short);
    assert_eq!(first.len + second.len + third.len, datagram.len());
}

proptest! {
    #[test]
    fn expand_inverts_truncate_within_the_window(
        largest_acked in proptest::option::of(0..1u64 << 61),
        ahead in 1..=1u64 << 30,
        received in any::<proptest::sample::Index>(),
    ) {
        let first = largest_acked.map_or(0, |largest| largest + 1);
        let full = first + ahead - 1;
        let number = truncate(full, largest_acked);
        let received = received.index(ahead as usize) as u64;
        let largest_received = match (received, largest_acked) {
            (0, None) => None,
            (_, _) => Some(first + received - 1),
        };
        prop_assert_eq!(expand(largest_received, number.value(), number.len()), full);
        let mut buf = Vec::new();
        number.encode(&mut buf);
        prop_assert_eq!(buf.len(), number.len());
    }

    #[test]
    fn numbers_are_expanded_after_later_ones_have_arrived(
        largest_acked in 0..1u64 << 61,
        bits in 0..30u32,
        extra in any::<proptest::sample::Index>(),
        share in 0.0..=1.0,
    ) {
        let ahead = (1 << bits) + extra.index((1 << bits) + 1) as u64;
        let full = largest_acked + ahead;
        let number = truncate_for_reordering(full, Some(largest_acked));
        let later = ((2 * ahead - 2).max(0x7ffe) as f64 * share) as u64;
        prop_assert_eq!(expand(Some(full + later), number.value(), number.len()), full);
        prop_assert_eq!(expand(Some(largest_acked), number.value(), number.len()), full);
    }

    #[test]
    fn expansion_never_panics(largest: Option<u64>, truncated: u32, len in 0..9usize) {
        expand(largest, truncated, len);
    }

    #[test]
    fn parse_inverts_encode_of_long_headers(
        kind in prop_oneof![
            Just(LongType::Initial),
            Just(LongType::ZeroRtt),
            Just(LongType::Handshake),
        ],
        dcid in connection_id(),
        scid in connection_id(),
        version in prop_oneof![Just(Version::V1), Just(Version::V2)],
        token in bytes(0..100),
        number in number(),
        before in bytes(0..50),
        payload in bytes(0..300),
    ) {
        let mut buf = before.clone();
        let header = LongHeader { kind, version: version.number(), dcid, scid, token: &token };
        let end = header.encode(number, false, &mut buf);
        prop_assert_eq!(end.payload_offset, buf.len());
        prop_assert_eq!(end.number_offset + number.len(), buf.len());
        buf.extend(&payload);
        let length = buf.len() - end.number_offset;
        patch_length(&mut buf, end.length_offset, length);

        let packet = &buf[before.len()..];
        let parsed = protected(packet, 8);
        prop_assert_eq!((parsed.dcid, parsed.scid), (dcid, scid));
        prop_assert_eq!(parsed.version, Some(version));
        prop_assert_eq!(parsed.number_offset + before.len(), end.number_offset);
        prop_assert_eq!(parsed.len, packet.len());
        prop_assert_eq!(usize::from(parsed.first_byte & bits::NUMBER_LEN) + 1, number.len());
        prop_assert_eq!(parsed.first_byte & bits::RESERVED_LONG, 0);
        prop_assert_eq!(destination(packet, 8), Some(&dcid[..]));
        match kind {
            LongType::Initial => prop_assert_eq!(parsed.token(packet), token),
            LongType::ZeroRtt => prop_assert_eq!(parsed.kind, ProtectedKind::ZeroRtt),
            LongType::Handshake => prop_assert_eq!(parsed.kind, ProtectedKind::Handshake),
        }
        for len in 0..packet.len() {
            prop_assert_eq!(parse(&packet[..len], 8, false), Err(HeaderError::Truncated));
        }
    }

    #[test]
    fn parse_inverts_encode_of_short_headers(
        dcid in connection_id(),
        spin: bool,
        key_phase: bool,
        number in number(),
        payload in bytes(0..100),
    ) {
        let mut buf = Vec::new();
        let end = ShortHeader { dcid, spin, key_phase }.encode(number, false, &mut buf);
        buf.extend(&payload);
        let parsed = protected(&buf, dcid.len());
        prop_assert_eq!(parsed.dcid, dcid);
        prop_assert_eq!(parsed.scid, ConnectionId::EMPTY);
        prop_assert_eq!(parsed.number_offset, end.number_offset);
        prop_assert_eq!(parsed.len, buf.len());
        prop_assert_eq!(parsed.first_byte & bits::SPIN != 0, spin);
        prop_assert_eq!(parsed.first_byte & bits::KEY_PHASE != 0, key_phase);
        prop_assert_eq!(parsed.first_byte & bits::RESERVED_SHORT, 0);
        prop_assert_eq!(destination(&buf, dcid.len()), Some(&dcid[..]));
        for len in 0..=dcid.len() {
            prop_assert_eq!(parse(&buf[..len], dcid.len(), false), Err(HeaderError::Truncated));
            prop_assert_eq!(destination(&buf[..len], dcid.len()), None);
        }
    }

    #[test]
    fn arbitrary_bytes_parse_consistently_with_destination(
        mut bytes in bytes(0..100),
        version_1: bool,
        local_cid_len in 0..30usize,
        accept: bool,
    ) {
        if version_1 && bytes.len() > 6 {
            bytes[1..5].copy_from_slice(&VERSION_1.to_be_bytes());
            bytes[5] %= 24;
        }
        let routed = destination(&bytes, local_cid_len);
        match parse(&bytes, local_cid_len, accept) {
            Ok(Packet::Protected(header)) => {
                prop_assert!(header.number_offset <= header.len && header.len <= bytes.len());
                prop_assert_eq!(routed, Some(&header.dcid[..]));
                header.token(&bytes);
            }
            Ok(Packet::Retry(retry)) => prop_assert_eq!(routed, Some(&retry.dcid[..])),
            Ok(Packet::VersionNegotiation(packet)) => {
                prop_assert_eq!(routed, Some(packet.dcid));
                prop_assert!(packet.versions().count() > 0);
            }
            Ok(Packet::UnsupportedVersion { dcid, .. }) => prop_assert_eq!(routed, Some(dcid)),
            Err(_) => {}
        }
    }
}
