use marline_wire::{PathId, Side, Version};
use rustls::CipherSuite;
use rustls::crypto::tls13::OkmBlock;

use super::{SecretPair, TrafficSecrets};
use crate::crypto::{Sealing, open, seal, unprotect};
use crate::testing::hex;

fn secrets(side: Side, server: &str) -> TrafficSecrets {
    let secrets = SecretPair {
        client: OkmBlock::new(&[1; 32]),
        server: OkmBlock::new(&hex(server)),
    };
    let cipher = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    TrafficSecrets::new(cipher, Version::V2, side, secrets).expect("the library has it")
}

const SECRET: &str = "9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b";

#[test]
fn chacha20_short_header_of_rfc_9369_appendix_a5() {
    let keys = secrets(Side::Server, SECRET).keys();
    let mut packet = hex("4200bff401");
    let sealing = Sealing {
        path_id: PathId::INITIAL,
        number: 654_360_564,
        packet_start: 0,
        number_offset: 1,
        payload_offset: 4,
    };
    seal(&keys.local, sealing, &mut packet);
    assert_eq!(packet, hex("5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"));

    let client = secrets(Side::Client, SECRET).keys().remote;
    unprotect(&*client.header, &mut packet, 1).expect("long enough");
    let opened = open(
        &*client.packet,
        PathId::INITIAL,
        654_360_564,
        &mut packet,
        4,
    );
    assert_eq!(opened, Ok(&[0x01][..]));
}

#[test]
fn key_update_of_rfc_9369_appendix_a5() {
    let mut updated = secrets(Side::Server, SECRET);
    updated.update();
    assert_eq!(
        updated.secrets.server.as_ref(),
        hex("c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88")
    );
}

#[test]
fn a_cipher_without_quic_keys_is_refused() {
    let secrets = SecretPair {
        client: OkmBlock::new(&[1; 32]),
        server: OkmBlock::new(&[2; 32]),
    };
    let cipher = CipherSuite::TLS13_AES_128_CCM_SHA256;
    assert!(TrafficSecrets::new(cipher, Version::V2, Side::Client, secrets).is_none());
}
