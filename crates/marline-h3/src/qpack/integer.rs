//! Integers with a prefix (RFC 7541, section 5.1; RFC 9204, section 4.1.1).

/// The largest integer accepted: QPACK needs 62 bits (RFC 9204, section 4.1.1).
pub(super) const MAX: u64 = (1 << 62) - 1;

/// Bytes after the prefix at most: nine groups of seven bits hold [`MAX`]; more are leading zeros.
pub(super) const MAX_CONTINUATION: usize = 9;

/// Appends `value` with a prefix of `bits`; `flags` are the bits above the prefix.
pub(super) fn encode(value: u64, bits: u32, flags: u8, out: &mut Vec<u8>) {
    let full = (1_u64 << bits) - 1;
    if value < full {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | full as u8);
    let mut rest = value - full;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qpack::Problem;
    use crate::qpack::reader::{ReadError, Reader};
    use proptest::prelude::*;

    fn decode(bytes: &[u8], bits: u32) -> Result<u64, ReadError> {
        Reader::new(bytes).integer(bits)
    }

    #[test]
    fn examples_of_rfc_7541_appendix_c1() {
        for (value, bits, bytes) in [
            (10, 5, &[0x0a][..]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
        ] {
            let mut out = Vec::new();
            encode(value, bits, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(decode(bytes, bits), Ok(value));
        }
    }

    #[test]
    fn the_largest_integer_is_accepted_and_the_next_is_not() {
        for bits in 3..=8 {
            let mut out = Vec::new();
            encode(MAX, bits, 0, &mut out);
            assert_eq!(decode(&out, bits), Ok(MAX));
            out.clear();
            encode(MAX + 1, bits, 0, &mut out);
            assert_eq!(
                decode(&out, bits),
                Err(ReadError::Invalid(Problem::IntegerTooLarge))
            );
        }
    }

    #[test]
    fn an_integer_of_leading_zeros_is_refused_before_it_ends() {
        let mut bytes = vec![0xff];
        bytes.extend([0x80; MAX_CONTINUATION]);
        assert_eq!(
            decode(&bytes, 8),
            Err(ReadError::Invalid(Problem::IntegerTooLarge))
        );
        bytes.pop();
        assert_eq!(decode(&bytes, 8), Err(ReadError::Truncated));
    }

    proptest! {
        #[test]
        fn decode_inverts_encode(value in 0..=MAX, bits in 3_u32..=8, flags: u8) {
            let flags = if bits == 8 { 0 } else { flags >> bits << bits };
            let mut out = Vec::new();
            encode(value, bits, flags, &mut out);
            prop_assert_eq!(decode(&out, bits), Ok(value));
            prop_assert_eq!(decode(&out[..out.len() - 1], bits), Err(ReadError::Truncated));
        }
    }
}
