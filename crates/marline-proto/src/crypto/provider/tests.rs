use super::{Sha256, TokenCipher, equal, hmac_sha256};
use crate::testing::hex;

/// FIPS 180-4's example "abc".
#[test]
fn sha256_of_pieces_is_that_of_the_whole() {
    let expected = hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(Sha256::of(b"abc")[..], expected);
    let mut hash = Sha256::new();
    hash.update(b"a");
    hash.update(b"bc");
    assert_eq!(hash.finish()[..], expected);
}

#[test]
fn hmac_of_rfc_4231_test_case_2() {
    let expected = hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_eq!(
        hmac_sha256(b"Jefe", b"what do ya want for nothing?")[..],
        expected
    );
}

#[test]
fn comparison_covers_every_byte_and_the_length() {
    assert!(equal(b"equal", b"equal"));
    assert!(!equal(b"equal", b"Equal"));
    assert!(!equal(b"equal", b"equaL"));
    assert!(!equal(b"equal", b"equa"));
}

#[test]
fn tokens_have_the_announced_overhead() {
    let cipher = TokenCipher::new(&[3; 32]);
    let mut token = cipher.seal([9; 12], b"content");
    assert_eq!(token.len(), b"content".len() + TokenCipher::OVERHEAD);
    assert_eq!(cipher.open(&mut token).unwrap().plain, b"content");
}
