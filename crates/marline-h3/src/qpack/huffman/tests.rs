use super::*;
use proptest::prelude::*;

fn encoded(string: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(string, &mut out);
    out
}

fn decoded(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    decode(bytes, usize::MAX, &mut out).map(|()| out)
}

fn invalid(problem: Problem) -> Result<Vec<u8>, DecodeError> {
    Err(DecodeError::Invalid(problem))
}

#[test]
fn strings_of_rfc_7541_appendices_c4_and_c6() {
    for (string, hex) in [
        ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
        ("no-cache", "a8eb10649cbf"),
        ("custom-key", "25a849e95ba97d7f"),
        ("custom-value", "25a849e95bb8e8b4bf"),
        ("302", "6402"),
        ("private", "aec3771a4b"),
        (
            "Mon, 21 Oct 2013 20:13:21 GMT",
            "d07abe941054d444a8200595040b8166e082a62d1bff",
        ),
        (
            "https://www.example.com",
            "9d29ad171863c78f0b97c8e9ae82ae43d3",
        ),
        ("307", "640eff"),
        ("gzip", "9bd9ab"),
        (
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ),
    ] {
        let bytes = crate::qpack::tests::hex(hex);
        assert_eq!(encoded(string.as_bytes()), bytes, "{string}");
        assert_eq!(encoded_len(string.as_bytes()), bytes.len());
        assert_eq!(decoded(&bytes), Ok(string.as_bytes().to_vec()));
    }
}

#[test]
fn codes_of_rfc_7541_appendix_b() {
    for (symbol, code, length) in [
        (0, 0x1ff8, 13),
        (10, 0x3fff_fffc, 30),
        (b' ', 0x14, 6),
        (b'0', 0x0, 5),
        (b'&', 0xf8, 8),
        (b'?', 0x3fc, 10),
        (b'\\', 0x7fff0, 19),
        (127, 0xfff_fffc, 28),
        (255, 0x3ff_ffee, 26),
    ] {
        let symbol = usize::from(symbol);
        assert_eq!((CODES[symbol], LENGTHS[symbol]), (code, length), "{symbol}");
    }
    assert_eq!(CODES[END_OF_STRING], 0x3fff_ffff);
}

#[test]
fn padding_is_shorter_than_a_byte() {
    // 'a' is 00011.
    assert_eq!(decoded(&[0b0001_1111]), Ok(b"a".to_vec()));
    assert_eq!(
        decoded(&[0b0001_1111, 0xff]),
        invalid(Problem::HuffmanPadding)
    );
    assert_eq!(decoded(&[0xff]), invalid(Problem::HuffmanPadding));
    assert_eq!(
        decoded(&[0xff, 0xff, 0xff]),
        invalid(Problem::HuffmanPadding)
    );
}

#[test]
fn padding_is_all_ones() {
    assert_eq!(decoded(&[0b0001_1110]), invalid(Problem::HuffmanPadding));
    assert_eq!(decoded(&[0b0001_1011]), invalid(Problem::HuffmanPadding));
}

#[test]
fn the_end_of_string_symbol_is_refused() {
    assert_eq!(
        decoded(&[0xff, 0xff, 0xff, 0xff]),
        invalid(Problem::HuffmanEndOfString)
    );
    // After an 'a', followed by another.
    assert_eq!(
        decoded(&[0x1f, 0xff, 0xff, 0xff, 0xe3]),
        invalid(Problem::HuffmanEndOfString)
    );
}

#[test]
fn an_empty_string_takes_no_bytes() {
    assert_eq!(encoded(b""), b"");
    assert_eq!(decoded(b""), Ok(Vec::new()));
}

#[test]
fn a_string_at_the_limit_is_decoded_and_a_longer_one_is_not() {
    let bytes = encoded(b"abcdef");
    let mut out = b"kept".to_vec();
    assert_eq!(decode(&bytes, 6, &mut out), Ok(()));
    assert_eq!(out, b"keptabcdef");
    assert_eq!(
        decode(&bytes, 5, &mut Vec::new()),
        Err(DecodeError::TooLong)
    );
}

proptest! {
    #[test]
    fn decode_inverts_encode(string: Vec<u8>) {
        let bytes = encoded(&string);
        prop_assert_eq!(bytes.len(), encoded_len(&string));
        prop_assert!(shortest_decoded(bytes.len() as u64) <= string.len() as u64);
        prop_assert_eq!(decoded(&bytes), Ok(string));
    }

    #[test]
    fn what_decodes_is_the_only_encoding(bytes: Vec<u8>) {
        if let Ok(string) = decoded(&bytes) {
            prop_assert_eq!(encoded(&string), bytes);
        }
    }
}
