use std::sync::Arc;

use marline_wire::frame::{Frame, Frames};
use marline_wire::{ConnectionId, PathId};
use proptest::prelude::*;

use super::*;
use crate::crypto::{Sealing, open, seal, unprotect};
use crate::handshake::{Cipher, CryptoToken, Handshake, HandshakeStep, TlsConfigError};
use crate::limits::CRYPTO_BUFFER;
use crate::testing::TestIdentity;

const H3: &[u8] = b"h3";

fn params(initial_max_data: u64) -> TransportParameters {
    TransportParameters {
        initial_max_data,
        initial_source_connection_id: ConnectionId::new(&[7; 8]),
        initial_max_path_id: Some(3),
        ..TransportParameters::default()
    }
}

fn client(
    config: &TlsClientConfig,
    server_name: &str,
    params: &TransportParameters,
) -> Result<Handshake, ConnectError> {
    Handshake::client(&ClientStart {
        config,
        server_name,
        params,
        version: Version::V1,
        may_change: false,
        resume: true,
    })
}

/// A handshake and its results so far.
struct End {
    tls: Handshake,
    steps: Vec<HandshakeStep>,
}

impl End {
    fn new(tls: Handshake) -> Self {
        let mut end = Self {
            tls,
            steps: Vec::new(),
        };
        end.poll();
        end
    }

    fn poll(&mut self) {
        self.steps.extend(std::iter::from_fn(|| self.tls.poll()));
    }

    fn step_names(&self) -> Vec<String> {
        self.steps.iter().map(|step| format!("{step:?}")).collect()
    }

    /// All CRYPTO frames that are due, each at most `size` bytes long.
    fn frames(&mut self, size: usize) -> Vec<(CryptoToken, Vec<u8>)> {
        let mut frames = Vec::new();
        for space in SpaceId::ALL {
            while self.tls.has_crypto(space) {
                let (mut buf, mut token) = (vec![0xff; 3], None);
                self.tls
                    .write_frames(space, &mut buf, 3 + size, &mut |new| token = Some(new));
                assert!(buf.len() <= 3 + size);
                frames.push((token.expect("a frame"), buf.split_off(3)));
            }
        }
        frames
    }

    fn receive(&mut self, space: SpaceId, frame: &[u8]) -> Result<(), TransportError> {
        for frame in Frames::new(frame) {
            let Ok(Frame::Crypto(crypto)) = frame else {
                panic!("{frame:?}");
            };
            self.tls.on_crypto(space, &crypto)?;
            self.poll();
        }
        Ok(())
    }

    fn data(&mut self, space: SpaceId, offset: u64, data: &[u8]) -> Result<(), TransportError> {
        self.tls.on_crypto(space, &Crypto { offset, data })
    }

    fn parameters(&self) -> Option<&TransportParameters> {
        self.steps.iter().find_map(|step| match step {
            HandshakeStep::PeerParameters(params) => Some(&**params),
            _ => None,
        })
    }

    fn handshake_keys(&self) -> Option<&Keys> {
        self.steps.iter().find_map(|step| match step {
            HandshakeStep::HandshakeKeys(keys) => Some(&**keys),
            _ => None,
        })
    }

    fn one_rtt_keys(&self) -> Option<&Keys> {
        self.steps.iter().find_map(|step| match step {
            HandshakeStep::OneRttKeys { keys, .. } => Some(&**keys),
            _ => None,
        })
    }

    fn zero_rtt(&self) -> Option<(&DirectionalKeys, Option<&TransportParameters>)> {
        self.steps.iter().find_map(|step| match step {
            HandshakeStep::ZeroRttKeys { keys, remembered } => Some((keys, remembered.as_deref())),
            _ => None,
        })
    }
}

/// State that several connections of both ends share.
struct Configs {
    client: TlsClientConfig,
    server: TlsServerConfig,
}

impl Configs {
    fn new(client_alpn: &[&[u8]], server_alpn: &[&[u8]], only: Option<Cipher>) -> Self {
        let identity = TestIdentity::new(&["localhost"]);
        let mut client = identity.client(client_alpn, only);
        client.enable_early_data = true;
        let mut server = identity.server(server_alpn, None);
        server.max_early_data_size = u32::MAX;
        Self {
            client: TlsClientConfig::new(Arc::new(client)).unwrap(),
            server: TlsServerConfig::new(Arc::new(server)).unwrap(),
        }
    }

    fn ends(&self) -> (End, End) {
        let client = client(&self.client, "localhost", &params(1)).unwrap();
        let server = Handshake::server(ServerStart {
            config: &self.server,
            params: params(2),
            version: Version::V1,
            preferred: None,
        })
        .unwrap();
        (End::new(client), End::new(server))
    }
}

/// Exchanges frames until neither end has more to send.
fn shake(client: &mut End, server: &mut End) -> Result<(), TransportError> {
    loop {
        let (there, back) = (client.frames(1200), server.frames(1200));
        if there.is_empty() && back.is_empty() {
            return Ok(());
        }
        for (token, frame) in &there {
            server.receive(token.space, frame)?;
            client.tls.on_acked(token);
        }
        for (token, frame) in &back {
            client.receive(token.space, frame)?;
            server.tls.on_acked(token);
        }
    }
}

fn connected(configs: &Configs) -> (End, End) {
    let (mut client, mut server) = configs.ends();
    shake(&mut client, &mut server).unwrap();
    assert!(!client.tls.is_handshaking() && !server.tls.is_handshaking());
    (client, server)
}

fn assert_match(sender: &DirectionalKeys, receiver: &DirectionalKeys) {
    let mut buf = b"header..hello".to_vec();
    let packet = Sealing {
        path_id: PathId::INITIAL,
        number: 5,
        packet_start: 0,
        number_offset: 6,
        payload_offset: 8,
    };
    seal(sender, packet, &mut buf);
    let found = unprotect(&*receiver.header, &mut buf, 6).unwrap();
    assert_eq!(found.first_byte, b'h');
    assert_eq!(
        open(&*receiver.packet, PathId::INITIAL, 5, &mut buf, 8).unwrap(),
        b"hello"
    );
}

#[test]
fn a_full_handshake_completes_with_each_cipher() {
    for cipher in Cipher::ALL {
        let configs = Configs::new(&[b"other", H3], &[H3], Some(cipher));
        let (client, server) = connected(&configs);

        let expected = ["HandshakeKeys", "PeerParameters", "OneRttKeys", "Complete"];
        assert_eq!(client.step_names(), expected);
        let expected = ["PeerParameters", "HandshakeKeys", "OneRttKeys", "Complete"];
        assert_eq!(server.step_names(), expected);
        assert_eq!(client.parameters(), Some(&params(2)));
        assert_eq!(server.parameters(), Some(&params(1)));

        for keys in [End::handshake_keys, End::one_rtt_keys] {
            let (at_client, at_server) = (keys(&client).unwrap(), keys(&server).unwrap());
            assert_match(&at_client.local, &at_server.remote);
            assert_match(&at_server.local, &at_client.remote);
        }
        for end in [&client, &server] {
            assert_eq!(end.tls.alpn(), Some(H3));
            assert_eq!(end.tls.kind(), Some(HandshakeKind::Full));
            assert!(!end.tls.is_early_data_accepted());
        }
        assert_eq!(server.tls.server_name(), Some("localhost"));
        assert_eq!(client.tls.server_name(), None);
        assert_eq!(client.tls.peer_certificates().map(<[_]>::len), Some(1));
        assert_eq!(server.tls.peer_certificates(), None);
    }
}

#[test]
fn the_name_that_a_client_asks_for_chooses_the_configuration() {
    let [of_others, own] = [&["localhost"][..], &["a.test"]].map(TestIdentity::new);
    let server = |identity: &TestIdentity| {
        TlsServerConfig::new(Arc::new(identity.server(&[H3], None))).unwrap()
    };
    let chosen = server(&own);
    let config = server(&of_others)
        .choose_by_name(move |name| (name == Some("a.test")).then(|| chosen.clone()));
    for (identity, name) in [
        (&of_others, "localhost"),
        (&own, "a.test"),
        (&own, "A.Test"),
    ] {
        for size in [1200, 50] {
            let tls = TlsClientConfig::new(Arc::new(identity.client(&[H3], None))).unwrap();
            let mut client = End::new(client(&tls, name, &params(1)).unwrap());
            let mut server = End::new(
                Handshake::server(ServerStart {
                    config: &config,
                    params: params(2),
                    version: Version::V1,
                    preferred: None,
                })
                .unwrap(),
            );
            // The ClientHello arrives in one frame, or in many.
            for (token, frame) in client.frames(size) {
                server.receive(token.space, &frame).unwrap();
            }
            shake(&mut client, &mut server).unwrap();
            assert!(!client.tls.is_handshaking(), "{name}");
            assert_eq!(server.parameters(), Some(&params(1)));
        }
    }
}

#[test]
fn handshakes_with_other_keys_are_equally_long() {
    let length = || {
        let (mut client, mut server) = Configs::new(&[H3], &[H3], None).ends();
        let mut lengths = Vec::new();
        while client.tls.is_handshaking() {
            for (token, frame) in client.frames(1200) {
                lengths.push(frame.len());
                server.receive(token.space, &frame).unwrap();
            }
            for (token, frame) in server.frames(1200) {
                lengths.push(frame.len());
                client.receive(token.space, &frame).unwrap();
            }
        }
        lengths
    };
    let first = length();
    for _ in 0..20 {
        assert_eq!(length(), first);
    }
}

#[test]
fn zero_rtt_is_accepted() {
    let configs = Configs::new(&[H3], &[H3], None);
    connected(&configs);
    let (mut client, mut server) = configs.ends();
    assert_eq!(client.step_names(), ["ZeroRttKeys"]);
    let (_, remembered) = client.zero_rtt().unwrap();
    let remembered = remembered.unwrap();
    assert_eq!(remembered.initial_max_data, 2);
    assert_eq!(remembered.initial_source_connection_id, None);
    assert_eq!(remembered.initial_max_path_id, None);

    shake(&mut client, &mut server).unwrap();
    let expected = [
        "ZeroRttKeys",
        "HandshakeKeys",
        "ZeroRttAccepted",
        "PeerParameters",
        "OneRttKeys",
        "Complete",
    ];
    assert_eq!(client.step_names(), expected);
    let expected = [
        "ZeroRttKeys",
        "PeerParameters",
        "HandshakeKeys",
        "OneRttKeys",
        "Complete",
    ];
    assert_eq!(server.step_names(), expected);
    let (at_client, at_server) = (client.zero_rtt().unwrap(), server.zero_rtt().unwrap());
    assert_match(at_client.0, at_server.0);
    for end in [&client, &server] {
        assert!(end.tls.is_early_data_accepted());
        assert_eq!(end.tls.kind(), Some(HandshakeKind::Resumed));
    }
}

#[test]
fn zero_rtt_is_rejected_by_a_server_without_the_session() {
    let identity = TestIdentity::new(&["localhost"]);
    let mut client = identity.client(&[H3], None);
    client.enable_early_data = true;
    let client = TlsClientConfig::new(Arc::new(client)).unwrap();
    let fresh = || {
        let mut server = identity.server(&[H3], None);
        server.max_early_data_size = u32::MAX;
        Configs {
            client: client.clone(),
            server: TlsServerConfig::new(Arc::new(server)).unwrap(),
        }
    };
    connected(&fresh());
    let (client, server) = connected(&fresh());
    let expected = [
        "ZeroRttKeys",
        "HandshakeKeys",
        "ZeroRttRejected",
        "PeerParameters",
        "OneRttKeys",
        "Complete",
    ];
    assert_eq!(client.step_names(), expected);
    assert!(server.zero_rtt().is_none());
    assert!(!client.tls.is_early_data_accepted());
    assert_eq!(client.tls.kind(), Some(HandshakeKind::Full));
}

#[test]
fn sessions_resume_without_zero_rtt() {
    let identity = TestIdentity::new(&["localhost"]);
    let configs = Configs {
        client: TlsClientConfig::new(Arc::new(identity.client(&[H3], None))).unwrap(),
        server: TlsServerConfig::new(Arc::new(identity.server(&[H3], None))).unwrap(),
    };
    connected(&configs);
    let (client, server) = connected(&configs);
    for end in [&client, &server] {
        assert_eq!(end.tls.kind(), Some(HandshakeKind::Resumed));
        assert!(end.zero_rtt().is_none());
        assert_eq!(end.tls.alpn(), Some(H3));
    }
    assert!(client.tls.peer_certificates().is_some());
}

#[test]
fn no_common_protocol_causes_an_alert() {
    let (mut client, mut server) = Configs::new(&[b"other"], &[H3], None).ends();
    let error = shake(&mut client, &mut server).unwrap_err();
    assert_eq!(error.code, ErrorCode(0x178));
    assert_eq!(error.frame_type, Crypto::TYPE);
}

#[test]
fn a_certificate_of_another_key_causes_an_alert() {
    let (mut client, _) = Configs::new(&[H3], &[H3], None).ends();
    let (_, mut server) = Configs::new(&[H3], &[H3], None).ends();
    let error = shake(&mut client, &mut server).unwrap_err();
    assert_eq!(error.code.tls_alert(), Some(51), "{error}");
}

#[test]
fn malformed_parameters_are_an_error() {
    let configs = Configs::new(&[H3], &[H3], None);
    let only_servers_send_this = TransportParameters {
        stateless_reset_token: Some([1; 16]),
        ..params(1)
    };
    let client = client(&configs.client, "localhost", &only_servers_send_this).unwrap();
    let (mut client, (_, mut server)) = (End::new(client), configs.ends());
    let error = shake(&mut client, &mut server).unwrap_err();
    assert_eq!(error.code, ErrorCode::TRANSPORT_PARAMETER_ERROR);
}

#[test]
fn an_invalid_server_name_is_an_error() {
    let configs = Configs::new(&[H3], &[H3], None);
    let client = |name| client(&configs.client, name, &params(1));
    assert!(client("192.0.2.1").is_ok());
    let error = client("no name").unwrap_err();
    assert_eq!(error, ConnectError::ServerName("no name".into()));
}

#[test]
fn crypto_data_far_ahead_exceeds_the_buffer() {
    let (_, mut server) = Configs::new(&[H3], &[H3], None).ends();
    let (at, data) = (CRYPTO_BUFFER - 10, [1; 20]);
    server.data(SpaceId::Initial, at, &data[..10]).unwrap();
    let error = server.data(SpaceId::Initial, at, &data).unwrap_err();
    assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
}

#[test]
fn a_flood_of_crypto_data_is_not_valid_tls() {
    let (_, mut server) = Configs::new(&[H3], &[H3], None).ends();
    let flood = [1; 1200];
    let error = (0..)
        .find_map(|n| server.data(SpaceId::Initial, n * 1200, &flood).err())
        .unwrap();
    assert_eq!(error.code.tls_alert(), Some(50), "{error}");
}

#[test]
fn crypto_data_after_the_end_of_a_space_is_an_error() {
    let (mut client, mut server) = Configs::new(&[H3], &[H3], None).ends();
    let hello = client.frames(1200);
    for (token, frame) in &hello {
        server.receive(token.space, frame).unwrap();
    }
    for (token, frame) in &hello {
        server.receive(token.space, frame).unwrap();
    }
    let end = hello.last().unwrap().0.range.end;
    let error = server.data(SpaceId::Initial, end, &[1]).unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn crypto_data_left_unread_at_the_end_of_a_space_is_an_error() {
    let (mut client, mut server) = Configs::new(&[H3], &[H3], None).ends();
    server.data(SpaceId::Initial, 5000, &[1]).unwrap();
    let error = shake(&mut client, &mut server).unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn a_key_update_message_of_tls_is_an_error() {
    const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
    for keep in [false, true] {
        let mut configs = Configs::new(&[H3], &[H3], None);
        configs.server = configs.server.keep_exporter(keep);
        let (_, mut server) = connected(&configs);
        let error = server.data(SpaceId::Data, 0, &KEY_UPDATE).unwrap_err();
        assert_eq!(error.code, ErrorCode(0x10a), "{error}");
    }
}

#[test]
fn keying_material_is_exported_where_the_exporter_is_kept() {
    let mut configs = Configs::new(&[H3], &[H3], None);
    configs.server = configs.server.keep_exporter(true);
    let export = |end: &End| {
        let mut output = [0; 32];
        end.tls
            .export_keying_material(&mut output, b"label", Some(b"context"))
            .map(|()| output)
    };
    let (client, server) = connected(&configs);
    assert_eq!(export(&client).unwrap(), export(&server).unwrap());
    configs.server = configs.server.keep_exporter(false);
    assert!(export(&connected(&configs).1).is_err());
}

#[test]
fn a_server_drops_tls_after_its_tickets_are_acknowledged() {
    let (_, mut server) = connected(&Configs::new(&[H3], &[H3], None));
    assert!(server.tls.tls.is_none());
    server.tls.discard(SpaceId::Initial);
    server.tls.discard(SpaceId::Handshake);
    assert!(server.tls.streams.iter().all(Option::is_none));
    assert_eq!(server.tls.steps.capacity(), 0);
    server.data(SpaceId::Initial, 0, &[1]).unwrap();
}

#[test]
fn a_retry_resends_the_first_flight() {
    let (mut client, _) = Configs::new(&[H3], &[H3], None).ends();
    let first = client.frames(100);
    assert!(!client.tls.has_crypto(SpaceId::Initial));
    client.tls.on_retry();
    assert_eq!(client.frames(100), first);
}

#[test]
fn tls_configurations_that_do_not_fit_quic_are_errors() {
    let identity = TestIdentity::new(&["localhost"]);
    let mut server = identity.server(&[H3], None);
    server.max_early_data_size = 1000;
    let error = TlsServerConfig::new(Arc::new(server)).unwrap_err();
    assert_eq!(error, TlsConfigError::MaxEarlyDataSize(1000));
}

/// A link that loses, duplicates and reorders frames.
struct BadLink {
    fates: std::vec::IntoIter<u8>,
    order: u64,
}

impl BadLink {
    fn carry(
        &mut self,
        mut frames: Vec<(CryptoToken, Vec<u8>)>,
        sender: &mut End,
        receiver: &mut End,
    ) -> Result<(), TransportError> {
        for index in (1..frames.len()).rev() {
            self.order = self.order.wrapping_mul(6_364_136_223_846_793_005) + 1;
            frames.swap(index, (self.order >> 33) as usize % (index + 1));
        }
        for (token, frame) in frames {
            let has_keys = match token.space {
                SpaceId::Initial => true,
                SpaceId::Handshake => receiver.handshake_keys().is_some(),
                SpaceId::Data => !receiver.tls.is_handshaking(),
            };
            let fate = self.fates.next();
            if !has_keys || fate == Some(0) {
                sender.tls.on_lost(&token);
                continue;
            }
            receiver.receive(token.space, &frame)?;
            match fate {
                Some(1) => sender.tls.on_lost(&token),
                Some(2) => receiver.receive(token.space, &frame)?,
                _ => sender.tls.on_acked(&token),
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_handshake_completes_over_a_lossy_link(
        size in 20..1400usize,
        fates in proptest::collection::vec(0..4u8, 1..200),
        order in 0..1u64 << 32,
    ) {
        let (mut client, mut server) = Configs::new(&[H3], &[H3], None).ends();
        let mut link = BadLink { fates: fates.into_iter(), order };
        for _ in 0..500 {
            let (there, back) = (client.frames(size), server.frames(size));
            link.carry(there, &mut client, &mut server)?;
            link.carry(back, &mut server, &mut client)?;
        }
        prop_assert!(!client.tls.is_handshaking() && !server.tls.is_handshaking());
        prop_assert_eq!(client.parameters(), Some(&params(2)));
    }

    #[test]
    fn arbitrary_crypto_data_is_an_error_or_incomplete(
        offset in 0..100u64,
        data in proptest::collection::vec(any::<u8>(), 0..200),
        space in 0..3usize,
    ) {
        let (_, mut server) = Configs::new(&[H3], &[H3], None).ends();
        let _ = server.data(SpaceId::ALL[space], 0, &data[..data.len() / 2]);
        let _ = server.data(SpaceId::ALL[space], offset, &data);
        prop_assert!(server.tls.is_handshaking());
    }
}
