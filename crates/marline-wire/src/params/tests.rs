use super::*;
use proptest::{option::of, prelude::*};
use std::net::{SocketAddrV4, SocketAddrV6};

fn encoded(params: &TransportParameters) -> Vec<u8> {
    let mut buf = Vec::new();
    params.encode(&mut buf);
    buf
}

fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    let mut buf = Vec::new();
    varint::encode(id, &mut buf);
    varint::encode(value.len() as u64, &mut buf);
    buf.extend_from_slice(value);
    buf
}

fn int(id: u64, value: u64) -> Vec<u8> {
    let mut buf = Vec::new();
    varint::encode(value, &mut buf);
    parameter(id, &buf)
}

fn connection_id(len: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = ConnectionId> {
    proptest::collection::vec(any::<u8>(), len).prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

fn preferred_address() -> impl Strategy<Value = PreferredAddress> {
    let v4 = (any::<[u8; 4]>(), 1..=u16::MAX);
    let v6 = (any::<[u8; 16]>(), 1..=u16::MAX);
    (of(v4), of(v6), connection_id(1..=20), any::<[u8; 16]>()).prop_map(
        |(v4, v6, connection_id, stateless_reset_token)| PreferredAddress {
            ipv4: v4.map(|(ip, port)| SocketAddrV4::new(ip.into(), port)),
            ipv6: v6.map(|(ip, port)| SocketAddrV6::new(ip.into(), port, 0, 0)),
            connection_id,
            stateless_reset_token,
        },
    )
}

prop_compose! {
    /// As sent by a client: the list includes the chosen version.
    fn version_information()(
        mut available in proptest::collection::vec(1..=u32::MAX, 1..5),
        chosen in any::<proptest::sample::Index>(),
    ) -> VersionInformation {
        let chosen = *chosen.get(&available);
        available.dedup();
        VersionInformation { chosen, available }
    }
}

prop_compose! {
    /// The parameters that either side may send.
    fn common()(
        max_idle_timeout in 0..=varint::MAX,
        max_udp_payload_size in 1200..=varint::MAX,
        data in proptest::array::uniform4(0..=varint::MAX),
        streams in proptest::array::uniform2(0..=MAX_STREAMS),
        ack_delay_exponent in 0..=20u64,
        max_ack_delay in 0..1u64 << 14,
        min_ack_delay in of(0..=1000u64),
        flags: (bool, bool),
        active_connection_id_limit in 2..=varint::MAX,
        source in of(connection_id(0..=20)),
        max_datagram_frame_size in of(0..=varint::MAX),
        initial_max_path_id: Option<u32>,
        version_information in of(version_information()),
    ) -> TransportParameters {
        TransportParameters {
            version_information,
            max_idle_timeout,
            max_udp_payload_size,
            initial_max_data: data[0],
            initial_max_stream_data_bidi_local: data[1],
            initial_max_stream_data_bidi_remote: data[2],
            initial_max_stream_data_uni: data[3],
            initial_max_streams_bidi: streams[0],
            initial_max_streams_uni: streams[1],
            ack_delay_exponent,
            max_ack_delay,
            disable_active_migration: flags.0,
            active_connection_id_limit,
            initial_source_connection_id: source,
            max_datagram_frame_size,
            initial_max_path_id,
            grease_quic_bit: flags.1,
            min_ack_delay: min_ack_delay.map(|delay| delay * max_ack_delay),
            ..TransportParameters::default()
        }
    }
}

prop_compose! {
    fn server_parameters()(
        common in common(),
        original in of(connection_id(0..=20)),
        token: Option<[u8; 16]>,
        preferred_address in of(preferred_address()),
        retry in of(connection_id(0..=20)),
        coordinates_bundles: bool,
    ) -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: original,
            stateless_reset_token: token,
            preferred_address,
            retry_source_connection_id: retry,
            coordinates_bundles,
            ..common
        }
    }
}

prop_compose! {
    fn client_parameters()(
        common in common(),
        bundle in of((any::<[u8; 16]>(), 1..=varint::MAX)),
    ) -> TransportParameters {
        TransportParameters {
            bundle: bundle.map(|(id, connections)| BundleMembership { id, connections }),
            ..common
        }
    }
}

/// The ID of the parameter that names a bundle.
const BUNDLE: u64 = 0x2d61_726c_696e_6500;

/// The value of that parameter: an identifier followed by `rest`.
fn membership(rest: &[u8]) -> Vec<u8> {
    parameter(BUNDLE, &[&[0xab; 16][..], rest].concat())
}

#[test]
fn absent_parameters_have_their_defaults() {
    let default = TransportParameters::default();
    assert!(encoded(&default).is_empty());
    assert_eq!(TransportParameters::decode(Side::Client, &[]), Ok(default));
}

#[test]
fn parameters_encode_to_handwritten_bytes() {
    let params = TransportParameters {
        max_idle_timeout: 30_000,
        disable_active_migration: true,
        initial_source_connection_id: Some(ConnectionId::EMPTY),
        min_ack_delay: Some(1000),
        ..TransportParameters::default()
    };
    let bytes = [
        0x01, 4, 0x80, 0, 0x75, 0x30, // max_idle_timeout
        0x0c, 0, // disable_active_migration
        0x0f, 0, // initial_source_connection_id
        0xc0, 0, 0, 0, 0xff, 0x04, 0xde, 0x1b, 2, 0x43, 0xe8, // min_ack_delay
    ];
    assert_eq!(encoded(&params), bytes);
    let decoded = TransportParameters::decode(Side::Client, &bytes);
    assert_eq!(decoded, Ok(params));
}

#[test]
fn forbidden_values_are_errors() {
    let mut address = vec![0; 4 + 2 + 16 + 2];
    address.push(0);
    address.extend([7; 16]);
    for bytes in [
        int(0x03, 1199),
        int(0x08, MAX_STREAMS + 1),
        int(0x09, MAX_STREAMS + 1),
        int(0x0a, 21),
        int(0x0b, 1 << 14),
        int(0x0e, 1),
        int(0xff04_de1b, 25_001),
        int(0x3e, 1 << 32),
        int(0x3e, varint::MAX),
        parameter(0x3e, &[]),
        parameter(0x3e, &[0, 0]),
        int(0x3e, 2).repeat(2),
        parameter(0x00, &[0; 21]),
        parameter(0x02, &[0; 15]),
        parameter(0x02, &[0; 17]),
        parameter(0x04, &[]),
        parameter(0x04, &[0, 0]),
        parameter(0x04, &[0x40]),
        parameter(0x0c, &[0]),
        parameter(0x0d, &address),
        parameter(0x2ab2, &[1]),
        [int(0x04, 7), int(0x04, 7)].concat(),
    ] {
        let error = TransportParameters::decode(Side::Server, &bytes).unwrap_err();
        assert_eq!(
            error.code,
            ErrorCode::TRANSPORT_PARAMETER_ERROR,
            "{bytes:x?}"
        );
    }
}

#[test]
fn values_at_the_limits_are_accepted() {
    let bytes = [
        int(0x03, 1200),
        int(0x08, MAX_STREAMS),
        int(0x0a, 20),
        int(0x0b, (1 << 14) - 1),
        int(0x0e, 2),
        int(0xff04_de1b, 16_383_000),
        int(0x3e, u32::MAX.into()),
    ];
    assert!(TransportParameters::decode(Side::Client, &bytes.concat()).is_ok());
}

#[test]
fn initial_max_path_id_zero_differs_from_absent() {
    let params = TransportParameters {
        initial_max_path_id: Some(0),
        ..TransportParameters::default()
    };
    let bytes = [0x3e, 1, 0];
    assert_eq!(encoded(&params), bytes);
    for side in [Side::Client, Side::Server] {
        let decoded = TransportParameters::decode(side, &bytes);
        assert_eq!(decoded.as_ref(), Ok(&params));
    }
}

#[test]
fn server_parameters_from_a_client_are_errors() {
    let id = ConnectionId::new(&[1]);
    let default = TransportParameters::default;
    for params in [
        TransportParameters {
            original_destination_connection_id: id,
            ..default()
        },
        TransportParameters {
            stateless_reset_token: Some([1; 16]),
            ..default()
        },
        TransportParameters {
            retry_source_connection_id: id,
            ..default()
        },
        TransportParameters {
            preferred_address: Some(PreferredAddress {
                ipv4: None,
                ipv6: None,
                connection_id: ConnectionId::new(&[1]).unwrap(),
                stateless_reset_token: [1; 16],
            }),
            ..default()
        },
    ] {
        let bytes = encoded(&params);
        assert!(TransportParameters::decode(Side::Client, &bytes).is_err());
        assert_eq!(
            TransportParameters::decode(Side::Server, &bytes),
            Ok(params)
        );
    }
}

#[test]
fn bundle_parameter_encodes_to_handwritten_bytes_and_hides_its_id_in_debug() {
    let params = TransportParameters {
        bundle: Some(BundleMembership {
            id: [0xab; 16],
            connections: 3,
        }),
        ..TransportParameters::default()
    };
    let head = [0xed, 0x61, 0x72, 0x6c, 0x69, 0x6e, 0x65, 0x00, 17];
    let bytes = [&head[..], &[0xab; 16], &[3]].concat();
    assert_eq!(encoded(&params), bytes);
    assert_eq!(membership(&[3]), bytes);
    let text = format!("{params:?}");
    assert!(text.contains("id: abab.., connections: 3"), "{text}");
    let decoded = TransportParameters::decode(Side::Client, &bytes);
    assert_eq!(decoded, Ok(params));
}

#[test]
fn malformed_bundle_parameters_are_errors_that_hide_the_id() {
    let largest = TransportParameters::decode(Side::Client, &membership(&[0xff; 8]));
    let bundle = largest.expect("any number but 0 is one").bundle;
    assert_eq!(bundle.map(|bundle| bundle.connections), Some(varint::MAX));
    for (sender, bytes) in [
        (Side::Client, membership(&[0])),
        (Side::Client, membership(&[0x40, 0])),
        (Side::Client, membership(&[])),
        (Side::Client, membership(&[0x40])),
        (Side::Client, membership(&[3, 3])),
        (Side::Client, parameter(BUNDLE, &[])),
        (Side::Client, parameter(BUNDLE, &[0xab; 15])),
        (Side::Client, membership(&[3]).repeat(2)),
        (Side::Server, membership(&[3])),
        (Side::Client, parameter(BUNDLE + 1, &[])),
        (Side::Server, parameter(BUNDLE + 1, &[1])),
        (Side::Server, parameter(BUNDLE + 1, &[]).repeat(2)),
    ] {
        let error = TransportParameters::decode(sender, &bytes).unwrap_err();
        let code = ErrorCode::TRANSPORT_PARAMETER_ERROR;
        assert_eq!(error.code, code, "{sender:?} {bytes:x?}");
        let reason = error.to_string();
        assert!(!reason.contains("abab"), "{reason}");
    }
}

#[test]
fn version_information_encodes_to_handwritten_bytes() {
    let params = TransportParameters {
        version_information: Some(VersionInformation {
            chosen: 1,
            available: vec![0x6b33_43cf, 1],
        }),
        ..TransportParameters::default()
    };
    let bytes = [0x11, 12, 0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf, 0, 0, 0, 1];
    assert_eq!(encoded(&params), bytes);
    for side in [Side::Client, Side::Server] {
        let decoded = TransportParameters::decode(side, &bytes);
        assert_eq!(decoded.as_ref(), Ok(&params));
    }
}

/// RFC 9368, section 4.
#[test]
fn malformed_version_information_is_an_error() {
    let information = |versions: &[u32]| {
        let bytes: Vec<u8> = versions.iter().flat_map(|v| v.to_be_bytes()).collect();
        parameter(0x11, &bytes)
    };
    for (sender, bytes) in [
        (Side::Server, parameter(0x11, &[])),
        (Side::Server, parameter(0x11, &[0, 0, 1])),
        (Side::Server, parameter(0x11, &[0, 0, 0, 1, 0])),
        (Side::Server, information(&[0, 1])),
        (Side::Server, information(&[1, 0])),
        (Side::Client, information(&[1])),
        (Side::Client, information(&[1, 2])),
        (Side::Server, information(&[1, 1]).repeat(2)),
    ] {
        let error = TransportParameters::decode(sender, &bytes).unwrap_err();
        let code = ErrorCode::TRANSPORT_PARAMETER_ERROR;
        assert_eq!(error.code, code, "{sender:?} {bytes:x?}");
    }
    for versions in [&[1][..], &[1, 2], &[2, 1, 3]] {
        let decoded = TransportParameters::decode(Side::Server, &information(versions));
        assert!(decoded.is_ok(), "a server's list need not have its choice");
    }
}

#[test]
fn grease_parameter_is_sent_and_ignored_on_receipt() {
    let params = TransportParameters {
        grease: Some(ReservedParameter {
            id: 31 * 5 + 27,
            value: vec![1, 2, 3],
        }),
        ..TransportParameters::default()
    };
    let bytes = encoded(&params);
    assert_eq!(bytes, [0x40, 0xb6, 3, 1, 2, 3]);
    let twice = bytes.repeat(2);
    let default = TransportParameters::default();
    assert_eq!(
        TransportParameters::decode(Side::Client, &twice),
        Ok(default)
    );
}

proptest! {
    #[test]
    fn decode_inverts_encode(client_parameters in client_parameters(), server_parameters in server_parameters()) {
        for (side, params) in [(Side::Client, client_parameters), (Side::Server, server_parameters)] {
            let bytes = encoded(&params);
            prop_assert_eq!(TransportParameters::decode(side, &bytes), Ok(params));
        }
    }

    #[test]
    fn truncation_within_a_parameter_is_an_error(params in server_parameters()) {
        let bytes = encoded(&params);
        let mut ends = vec![0];
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() {
            reader.varint().unwrap();
            reader.prefixed().unwrap();
            ends.push(bytes.len() - reader.len());
        }
        for len in (0..bytes.len()).filter(|len| !ends.contains(len)) {
            prop_assert!(TransportParameters::decode(Side::Server, &bytes[..len]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_decode_to_stable_parameters_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for side in [Side::Client, Side::Server] {
            if let Ok(params) = TransportParameters::decode(side, &bytes) {
                prop_assert_eq!(
                    TransportParameters::decode(side, &encoded(&params)),
                    Ok(params)
                );
            }
        }
    }
}
