use marline_wire::packet::{Packet, parse, retry::pseudo_packet};

use marline_wire::ConnectionId;

use crate::crypto::{retry_tag, verify_retry_tag};
use crate::testing::hex;

#[test]
fn retry_of_rfc_9001_appendix_a4() {
    let original = ConnectionId::new(&hex("8394c8f03e515708")).unwrap();
    let packet = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    let Ok(Packet::Retry(retry)) = parse(&packet, 0, false) else {
        panic!("not a Retry");
    };
    let pseudo = pseudo_packet(original, retry.without_tag);
    assert_eq!(retry_tag(&pseudo), retry.integrity_tag);
    assert!(verify_retry_tag(&pseudo, &retry.integrity_tag));

    let mut altered = retry.integrity_tag;
    altered[15] ^= 1;
    assert!(!verify_retry_tag(&pseudo, &altered));
    let other = pseudo_packet(ConnectionId::EMPTY, retry.without_tag);
    assert!(!verify_retry_tag(&other, &retry.integrity_tag));
}
