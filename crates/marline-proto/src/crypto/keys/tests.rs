use marline_wire::packet::{Packet, parse, retry::pseudo_packet};

use marline_wire::{ConnectionId, Version};

use crate::crypto::{retry_tag, verify_retry_tag};
use crate::testing::hex;

/// Checks the tag of a Retry packet of the RFCs' examples.
fn check_retry(version: Version, packet: &str) {
    let original = ConnectionId::new(&hex("8394c8f03e515708")).unwrap();
    let packet = hex(packet);
    let Ok(Packet::Retry(retry)) = parse(&packet, 0, false) else {
        panic!("not a Retry");
    };
    let pseudo = pseudo_packet(original, retry.without_tag);
    assert_eq!(retry_tag(version, &pseudo), retry.integrity_tag);
    assert!(verify_retry_tag(version, &pseudo, &retry.integrity_tag));

    let mut altered = retry.integrity_tag;
    altered[15] ^= 1;
    assert!(!verify_retry_tag(version, &pseudo, &altered));
    let other = pseudo_packet(ConnectionId::EMPTY, retry.without_tag);
    assert!(!verify_retry_tag(version, &other, &retry.integrity_tag));
}

#[test]
fn retry_of_rfc_9001_appendix_a4() {
    check_retry(
        Version::V1,
        "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba",
    );
}

#[test]
fn retry_of_rfc_9369_appendix_a4() {
    check_retry(
        Version::V2,
        "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6",
    );
}
